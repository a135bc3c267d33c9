// Tests the engine on `headwater/filesystem` in the runtime that executes this file. The arguments are those
// that the runtime needs before a script.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { filesystem } from '../../dist/filesystem.js'
import { HeadwaterError, open } from '../../dist/index.js'
import { remove, runTests, temporaryDirectory } from './runtime.mjs'

const runtimeArguments = process.argv.slice(2)
const ACKS_BEFORE_KILL = 20

/** Passes an open engine to `use` and closes it afterwards. */
async function withEngine(directory, use) {
  const hw = await open({ storage: filesystem(directory) })
  try {
    return await use(hw)
  } finally {
    await hw.close()
  }
}

async function bodies(stream, query) {
  return (await stream.read(query).toArray()).map(({ body }) => body)
}

const isError = (code) => (error) => HeadwaterError.is(error) && error.code === code

const TESTS = {
  'reads appended records, also after a restart': async (directory) => {
    await withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      const { start, end } = await stream.append(['one', 'two'])
      assert.deepEqual([start.seqNum, end.seqNum], [0, 2])
      assert.deepEqual(await bodies(stream), ['one', 'two'])
    })
    await withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      assert.deepEqual(await bodies(stream), ['one', 'two'])
      assert.equal((await stream.append('three', { matchSeqNum: 2 })).start.seqNum, 2)
    })
  },

  'delivers history and live records to a follower': (directory) =>
    withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      await stream.append('history')
      const seen = []
      for await (const { body } of stream.follow({ seqNum: 0 })) {
        seen.push(body)
        if (seen.length === 1) await stream.append('live')
        if (seen.length === 2) break
      }
      assert.deepEqual(seen, ['history', 'live'])
    }),

  'pipelines many appends in a session': (directory) =>
    withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      await stream.append('first')
      const session = await stream.appendSession()
      const tickets = await Promise.all(Array.from({ length: 500 }, (_, i) => session.submit(`record ${i}`)))
      assert.ok(tickets.length === 500)
      await session.close()
      assert.equal((await stream.checkTail()).seqNum, 501)
    }),

  'keeps a fence and a trim after a restart': async (directory) => {
    await withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      await stream.append(['one', 'two', 'three'])
      await stream.fence('worker-7')
      await stream.trim(2)
    })
    await withEngine(directory, async (hw) => {
      const stream = hw.basin('my-app').stream('a')
      await assert.rejects(stream.append('x', { fencingToken: 'other' }), isError('fencing_token_mismatch'))
      await stream.append('four', { fencingToken: 'worker-7' })
      const { records } = await stream.readBatch({ seqNum: 2, count: 1 })
      assert.equal(records[0].seqNum, 2)
      assert.equal((await stream.readBatch()).records[0].seqNum, 2)
    })
  },

  'shares a directory that is opened again': (directory) =>
    withEngine(directory, async (hw) => {
      await hw.basin('my-app').stream('a').append('one')
      await withEngine(directory, async (again) => {
        assert.deepEqual(await bodies(again.basin('my-app').stream('a')), ['one'])
      })
      assert.equal((await hw.basin('my-app').stream('a').append('two')).start.seqNum, 1)
    }),

  'recovers everything that a killed process acknowledged, and reclaims its lock': async (directory) => {
    for (let round = 0; round < 3; round++) {
      const acknowledged = await killed(directory)
      await withEngine(directory, async (hw) => {
        const stream = hw.basin('my-app').stream('killed')
        const { seqNum } = await stream.checkTail()
        assert.ok(seqNum >= acknowledged, `${acknowledged} acknowledged, ${seqNum} stored`)
        assert.equal((await bodies(stream)).length, seqNum)
      })
    }
  },
}

/**
 * Kills a process that appends to the directory, after checking that it holds the lock. Resolves to its last
 * acknowledgement.
 */
async function killed(directory) {
  const holder = fileURLToPath(new URL('holder.mjs', import.meta.url))
  const child = spawn(process.execPath, [...runtimeArguments, holder, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let acknowledged = 0
  let count = 0
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    acknowledged = Number(line)
    count++
  })
  while (count < ACKS_BEFORE_KILL)
    await Promise.race([once(lines, 'line'), ended.then(() => assert.fail('the process exited'))])
  await assert.rejects(open({ storage: filesystem(directory) }), isError('storage'))
  child.kill('SIGKILL')
  await ended
  return acknowledged
}

const tests = Object.entries(TESTS).map(([title, run]) => ({
  title,
  run: async () => {
    const directory = await temporaryDirectory()
    try {
      await run(directory)
    } finally {
      await remove(directory)
    }
  },
}))
process.exit((await runTests('the engine on headwater/filesystem', tests)) ? 0 : 1)
