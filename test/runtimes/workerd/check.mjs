// Tests `headwater/durable-object` in workerd. The argument is the command of workerd.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { open } from '../../../dist/index.js'
import { memory } from '../../../dist/memory.js'
import { serve } from '../../../dist/node.js'
import { remove, runTests, temporaryDirectory } from '../runtime.mjs'

const [command] = process.argv.slice(2)
const RECORDS = '/v1/streams/kept/records'
const TRIM_ALL = { headers: [['', 'trim']], body: '\u0000\u001f'.padEnd(8, '\u0000') }
const FENCE = { headers: [['', 'fence']], body: 'ended' }
const LISTENING = /"event":"listen".*"port":(\d+)/

const directory = await temporaryDirectory()
await mkdir(join(directory, 'objects'))
await copyFile(join(import.meta.dirname, 'config.capnp'), join(directory, 'config.capnp'))
await build({
  entryPoints: [join(import.meta.dirname, 'worker.mjs')],
  outfile: join(directory, 'worker.js'),
  bundle: true,
  format: 'esm',
  external: ['cloudflare:*'],
  logLevel: 'warning',
})

/** Starts workerd on the same objects, passes a function that sends requests to `use`, and kills workerd. */
async function withWorkerd(use) {
  const args = ['serve', 'config.capnp', '--socket-addr', 'http=127.0.0.1:0', '--control-fd=3']
  const stdio = ['ignore', 'ignore', 'pipe', 'pipe']
  // With a process group of its own, because npm may install a script that starts the binary.
  const workerd = spawn(command, args, { cwd: directory, stdio, detached: true })
  const ended = once(workerd, 'close')
  let errors = ''
  workerd.stderr.on('data', (text) => {
    errors += text
  })
  try {
    const port = await portOf(workerd, ended, () => errors)
    return await use((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init))
  } finally {
    process.kill(-workerd.pid, 'SIGKILL')
    await ended
  }
}

async function portOf(workerd, ended, errors) {
  let events = ''
  for (;;) {
    const [text] = await Promise.race([
      once(workerd.stdio[3], 'data'),
      ended.then(() => assert.fail(`workerd ended: ${errors()}`)),
    ])
    events += text
    const port = LISTENING.exec(events)?.[1]
    if (port !== undefined) return port
  }
}

/** Appends records. Resolves to the sequence number after them. */
async function appendTo(send, path, records) {
  const headers = { 'content-type': 'application/json' }
  const response = await send(path, { method: 'POST', headers, body: JSON.stringify({ records }) })
  assert.equal(response.status, 200, await response.clone().text())
  return (await response.json()).end.seq_num
}

const append = (send, body) => appendTo(send, RECORDS, [{ body }])

/** The sequence numbers in a body of Server-Sent Events. */
function seqNumsOf(text) {
  const batches = [...text.matchAll(/^event: batch\n(?:id: .*\n)?data: (.*)$/gm)]
  return batches.flatMap(([, data]) => JSON.parse(data).records.map((record) => record.seq_num))
}

async function bodies(send) {
  const { records } = await (await send(`${RECORDS}?seq_num=0`)).json()
  return records.map(({ body }) => body)
}

const restarts = [
  {
    title: 'keeps what it acknowledged when workerd is killed',
    async run() {
      await withWorkerd(async (send) => {
        const config = { create_stream_on_append: true }
        const headers = { 'content-type': 'application/json' }
        const created = await send('/v1/basins/my-app', {
          method: 'PUT',
          headers,
          body: JSON.stringify({ config }),
        })
        assert.equal(created.status, 201)
        assert.equal(await append(send, 'one'), 1)
        assert.equal(await append(send, 'two'), 2)
      })
      await withWorkerd(async (send) => {
        assert.deepEqual(await bodies(send), ['one', 'two'])
        assert.equal(await append(send, 'three'), 3)
      })
    },
  },
  {
    title: 'reopens after an eviction, which ends the sessions of followers',
    run: () =>
      withWorkerd(async (send) => {
        const before = await bodies(send)
        const follower = await send(`${RECORDS}?seq_num=${before.length}`, {
          headers: { accept: 'text/event-stream' },
        })
        const reader = follower.body.getReader()
        await send('/evict').catch(() => {})
        await assert.rejects(async () => {
          while (!(await reader.read()).done);
        })
        assert.deepEqual(await bodies(send), before)
        await append(send, 'after')
        assert.deepEqual(await bodies(send), [...before, 'after'])
      }),
  },
  {
    title: 'shows a response that is trimmed and fenced while its reader still connects, 100 times',
    run: () =>
      withWorkerd(async (send) => {
        const headers = { accept: 'text/event-stream' }
        for (let i = 0; i < 100; i++) {
          const path = `/v1/streams/response-${i}/records`
          await appendTo(send, path, [{ body: 'one' }])
          const open = () => send(`${path}?seq_num=0&count=4&wait=60`, { headers })
          const connecting = open()
          await appendTo(send, path, [{ body: 'two' }])
          await appendTo(send, path, [TRIM_ALL, FENCE])
          for (const session of [connecting, open()]) {
            assert.deepEqual(seqNumsOf(await (await session).text()), [0, 1, 2, 3])
          }
        }
      }),
  },
  {
    title: 'rejects a second engine on the storage',
    run: () =>
      withWorkerd(async (send) => {
        assert.match(await (await send('/open-twice')).json(), /another engine of this Durable Object/)
      }),
  },
]

const USED = {
  start: 0,
  produced: [3, 4, 5],
  stored: ['one', 'two', 'three', 'a', 'b', 'c'],
  followed: ['b', 'c', 'live'],
  error: ['seq_num_mismatch', 7],
}

const clients = [
  {
    title: 'appends, produces, reads and follows through another Durable Object',
    run: () => withWorkerd(async (send) => assert.deepEqual(await (await send('/client')).json(), USED)),
  },
  {
    title: 'appends, produces, reads and follows through a server',
    async run() {
      const hw = await open({ storage: memory() })
      const server = await serve(hw, { port: 0, auth: 'none' })
      try {
        const path = `/client?url=${encodeURIComponent(server.url)}`
        await withWorkerd(async (send) => assert.deepEqual(await (await send(path)).json(), USED))
      } finally {
        await server.close({ graceMs: 0 })
        await hw.close()
      }
    },
  },
]

async function conformance() {
  const results = await withWorkerd(async (send) => (await send('/conformance')).json())
  return results.map(({ title, skip, error }) => ({
    title,
    skip,
    run: async () => assert.equal(error, undefined),
  }))
}

try {
  const passed = [
    await runTests('headwater/durable-object in workerd', await conformance()),
    await runTests('the engine in a Durable Object', restarts),
    await runTests('headwater/client in workerd', clients),
  ]
  process.exitCode = passed.every(Boolean) ? 0 : 1
} finally {
  await remove(directory)
}
