// The checks. Each has streams of its own, and leaves nothing open.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import { ANSWER_CHECKS } from './answers.mjs'
import { until } from './app.mjs'
import { CHAT_CHECKS } from './chat.mjs'
import { batchesOf } from './client.mjs'

const MIB = 1024 * 1024
/** What the limit of a batch counts for each record besides its body. */
const RECORD_OVERHEAD_BYTES = 8
const RELOAD_MS_MAX = 120_000
/** A watcher on a busy machine may miss a change that closely follows another: the edit is saved again. */
const SAVE_AGAIN_MS = 10_000
/** A server that replaces its worker may lose a request: Nitro 2 does where it finds `CI` set. */
const REQUEST_MS_MAX = 3_000
/** Lines of a stack trace, and the source that Bun shows above it. */
const IN_STACK = /^\s*(at |\d+ \|)/

/** What every app has to pass. */
export const CHECKS = {
  'incremental SSE': async (app) => {
    const stream = await app.createStream('sse')
    const session = await follow(app, stream)
    // A response that is buffered never passes the first event.
    for (const body of ['first', 'second', 'third']) {
      await (await app.append(stream, body)).bytes()
      assert.equal((await session.next()).records[0].body, body)
    }
    await until('the session', async () => (await app.stats()).waitingReads === 1)
    session.leave()
    await untilClosed(app)
  },

  'cancelled long poll': async (app) => {
    const stream = await app.createStream('cancelled-poll')
    const aborter = new AbortController()
    const { signal } = aborter
    const polling = app.request(`/v1/streams/${stream}/records?seq_num=0&wait=60`, { signal })
    await until('the poll', async () => (await app.stats()).waitingReads === 1)
    aborter.abort()
    await assert.rejects(polling)
    // It ends before its wait does.
    await untilClosed(app, 45_000)
  },

  'long polling': async (app) => {
    const stream = await app.createStream('polled')
    const polling = app.request(`/v1/streams/${stream}/records?seq_num=0&wait=60`)
    await until('the poll', async () => (await app.stats()).waitingReads === 1)
    const appended = await app.append(stream, 'one', 'zwei ✓')
    assert.equal((await appended.json()).end.seq_num, 2)
    const { records } = await (await polling).json()
    assert.deepEqual(bodiesOf(records), ['one', 'zwei ✓'])
  },

  'mount prefix': async (app) => {
    const { status } = await app.request('/v1/basins')
    assert.equal(status, 200)
    assert.equal((await app.request('/v1/basins', { headers: { authorization: '' } })).status, 401)
    assert.equal((await app.request('/v1/unknown')).status, 404)
    assert.notEqual((await app.request('/v1/basins', { mount: '' })).status, 200)
  },

  'append session': async (app) => {
    const stream = await app.createStream('session')
    // The client's `fetch` speaks HTTP/1.1 alone.
    const [head, tail] = await appendBatches(app, stream, app.http2 ? 's2s' : 'fetch', 100)
    assert.deepEqual([head, tail], [0, 100])
    await untilClosed(app)
  },

  'binary session': async (app) => {
    const stream = await app.createStream('binary')
    assert.deepEqual(await appendBatches(app, stream, 's2s', 10), [0, 10])
    await untilClosed(app)
  },

  compression: async (app) => {
    const stream = await app.createStream('compressed')
    const body = 'compressible '.repeat(1_000)
    await (await app.append(stream, body)).bytes()
    const headers = { 'accept-encoding': 'gzip' }
    const response = await app.request(`/v1/streams/${stream}/records?seq_num=0`, { headers })
    assert.equal(response.headers['content-encoding'], 'gzip')
    const { records } = JSON.parse(gunzipSync(await response.bytes()))
    assert.deepEqual(bodiesOf(records), [body])
  },

  'body of 1 MiB': async (app) => {
    const stream = await app.createStream('large')
    const body = 'x'.repeat(MIB - RECORD_OVERHEAD_BYTES)
    const { status } = await app.append(stream, body)
    assert.equal(status, 200)
    assert.deepEqual(await app.bodies(stream), [body])
  },

  'empty body': async (app) => {
    const stream = await app.createStream('ensured')
    const path = `/v1/streams/${stream}`
    assert.equal((await app.request(path, { method: 'PUT' })).status, 200)
    assert.equal((await app.request(path, { method: 'DELETE' })).status, 202)
  },

  'error logging': async (app) => {
    const stream = await app.createStream('logged')
    const mark = app.errors.length
    const session = await follow(app, stream)
    await (await app.append(stream, 'seen')).bytes()
    await session.next()
    session.leave()
    await untilClosed(app)
    const failed = await app.append(stream, 'fail')
    assert.equal(failed.status, 500)
    assert.equal((await failed.json()).code, 'storage')
    const logged = () => app.errors.slice(mark)
    await until('the error in the log', () => logged().includes('injected'))
    // The log is written in order: a line about the client that left would come first.
    const lines = logged()
      .split('\n')
      .filter((line) => !IN_STACK.test(line))
    assert.equal(lines.filter((line) => line.includes('injected')).length, 1)
    assert.deepEqual(
      lines.filter((line) => /abort|cancel|premature|disconnect|reset/i.test(line)),
      [],
    )
  },
}

/** What an app has to pass whose bundler takes headwater apart. */
const BUNDLE_CHECKS = {
  // Node before 22.15 has no zstd of its own: the codec is a part of headwater that is imported late.
  'zstd body': async (app) => {
    const stream = await app.createStream('zstd')
    const response = await app.request(`/v1/streams/${stream}/records`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'zstd' },
      body: zstdFrame(JSON.stringify({ records: [{ body: 'compressed' }] })),
    })
    assert.equal(response.status, 200, String(await response.bytes()))
    assert.deepEqual(await app.bodies(stream), ['compressed'])
  },
}

/** What a development server has to pass, which loads modules again after an edit. */
const EDIT_CHECKS = {
  'source edits': async (app, { edited }) => {
    const path = join(app.directory, edited)
    const source = await readFile(path, 'utf8')
    const stream = await app.createStream('edited')
    const bodies = []
    try {
      for (const body of ['first', 'second']) {
        let savedAt = Number.NEGATIVE_INFINITY
        const isLoaded = async () => {
          if (performance.now() - savedAt > SAVE_AGAIN_MS) {
            await writeFile(path, `${source}\nconsole.log('loaded after the ${body} edit')\n`)
            savedAt = performance.now()
          }
          const signal = AbortSignal.timeout(REQUEST_MS_MAX)
          await app.request('/v1/basins', { signal }).catch(() => {})
          return app.output.includes(`loaded after the ${body} edit`)
        }
        await until(`the ${body} edit`, isLoaded, RELOAD_MS_MAX)
        bodies.push(body)
        const appended = await app.append(stream, body)
        assert.equal(appended.status, 200, String(await appended.bytes()))
        assert.deepEqual(await app.bodies(stream), bodies)
      }
    } finally {
      await writeFile(path, source)
    }
  },
}

/** A frame with one block that is stored as it is (RFC 8878). `text` has at most 255 bytes. */
function zstdFrame(text) {
  const data = Buffer.from(text)
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, data.length, 0, 0, 0])
  const isLast = 1
  frame.writeUIntLE((data.length << 3) | isLast, 6, 3)
  return Buffer.concat([frame, data])
}

/** The checks of an app, by title. */
export function checksOf({ bundled = false, edited, chat = false, answers = false }) {
  if (chat) return CHAT_CHECKS
  if (answers) return ANSWER_CHECKS
  return { ...CHECKS, ...(bundled && BUNDLE_CHECKS), ...(edited && EDIT_CHECKS) }
}

/** What happens instead of a check, by its title. */
export function limitationsOf({ http2 = false, speaksHttp2 = http2, limitations }) {
  return { ...(!speaksHttp2 && { 'binary session': needsHttp2 }), ...limitations }
}

async function needsHttp2(app) {
  const stream = await app.createStream('binary')
  await assert.rejects(appendBatches(app, stream, 's2s', 1))
  await untilClosed(app)
}

/** For runtimes that do not tell a handler that its client has left: a long poll lasts for its `wait`. */
export async function endsWithItsWait(app) {
  const stream = await app.createStream('cancelled-poll')
  const aborter = new AbortController()
  const { signal } = aborter
  const polling = app.request(`/v1/streams/${stream}/records?seq_num=0&wait=60`, { signal })
  await until('the poll', async () => (await app.stats()).waitingReads === 1)
  aborter.abort()
  await assert.rejects(polling)
  assert.equal((await app.stats()).waitingReads, 1)
  await untilClosed(app)
}

/** Follows a stream by Server-Sent Events. */
async function follow(app, stream) {
  const aborter = new AbortController()
  const response = await app.request(`/v1/streams/${stream}/records?seq_num=0`, {
    headers: { accept: 'text/event-stream' },
    signal: aborter.signal,
  })
  assert.equal(response.status, 200)
  response.body.on('error', () => {})
  const batches = batchesOf(response)
  return {
    next: async () => (await batches.next()).value,
    leave: () => aborter.abort(),
  }
}

async function untilClosed(app, timeoutMs) {
  const isClosed = async () => {
    const { openSessions, openReads } = await app.stats()
    return openSessions + openReads === 0
  }
  await until('the engine to have nothing open', isClosed, timeoutMs)
}

function bodiesOf(records) {
  return records.map(({ body }) => body)
}

/** Appends one record at a time with the published client. Resolves to the first and the last position. */
async function appendBatches(app, stream, forceTransport, count) {
  const endpoint = `${app.url}/streams/v1`
  const s2 = new S2({
    accessToken: app.token,
    endpoints: { account: endpoint, basin: endpoint },
    retry: { maxAttempts: 1 },
    // The default of 5 seconds is short for a busy machine.
    requestTimeoutMillis: 120_000,
  })
  const handle = s2.basin(app.basin).stream(stream, { forceTransport })
  try {
    const session = await handle.appendSession()
    const batches = Array.from({ length: count }, (_, i) => [AppendRecord.string({ body: `record ${i}` })])
    const tickets = []
    for (const batch of batches) tickets.push(await session.submit(AppendInput.create(batch)))
    const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
    await session.close()
    return [acks[0].start.seqNum, acks.at(-1).end.seqNum]
  } finally {
    await handle.close()
  }
}
