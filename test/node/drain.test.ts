import { type ClientHttp2Stream, createServer } from 'node:http2'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { serve, toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { appendBatch } from '../../src/model/append-input.ts'
import { encodeMessageFrame, type Frame, FrameDecoder } from '../../src/wire/frame.ts'
import { encodeAppendInput } from '../../src/wire/protobuf.ts'
import { gated, testStorage } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { startRelay } from '../support/relay.ts'
import { http2Client, http2Fetch, until } from './support.ts'

const RECORDS = '/v1/streams/stream/records'
const FRAMES = { 'svc-basin': 'basin', 'content-type': 'svcs/proto', accept: 'application/protobuf' }
const EVENTS = { 'svc-basin': 'basin', accept: 'text/event-stream' }

async function openEngine(storage = testStorage()) {
  const engine = await open({ storage })
  onTestFinished(() => engine.close())
  const stream = engine.basin('basin').stream('stream')
  await stream.append('before')
  return { engine, stream }
}

/** A handler behind a server of Node's own, and a connection to it. The test decides when time passes. */
async function startHandler(storage = testStorage()) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const { engine, stream } = await openEngine(storage)
  const handler = toNodeHandler(engine, { auth: 'none' })
  const server = createServer(handler)
  const session = await http2Client(await listening(server))
  const read = (headers: Record<string, string>, query = '') =>
    received(session.request({ ':path': `${RECORDS}${query}`, ...headers }))
  const append = () => {
    const upload = session.request({ ':method': 'POST', ':path': RECORDS, ...FRAMES })
    return { ...received(upload), send: (body: string) => upload.write(frameOf(body)) }
  }
  return { engine, stream, handler, session, read, append }
}

/** Collects what a response has sent. */
function received(stream: ClientHttp2Stream) {
  const frames: Frame[] = []
  const decoder = new FrameDecoder()
  const chunks: Buffer[] = []
  const ended = new Promise<void>((resolve) => stream.once('end', resolve))
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (stream.sentHeaders['content-type'] === 'svcs/proto') frames.push(...decoder.decode(chunk))
  })
  return { frames, ended, text: () => Buffer.concat(chunks).toString() }
}

function frameOf(body: string): Uint8Array {
  const batch = appendBatch(body)
  return encodeMessageFrame(encodeAppendInput(batch, batch))
}

/** Frames as the words `message`, `advice` and the status of an error. */
function summary(frames: readonly Frame[]) {
  return frames.map((frame) =>
    frame.kind === 'terminal'
      ? `${frame.status} ${JSON.parse(frame.body).code}`
      : frame.reconnectAdvised
        ? 'advice'
        : 'message',
  )
}

describe('a server that is about to stop', () => {
  it('advises a waiting reader in frames to reconnect, then ends its session', async () => {
    const { handler, read, stream } = await startHandler()
    const { frames, ended } = read(FRAMES, '?seq_num=0')
    await until(() => frames.length === 2)
    const drained = handler.drain()
    await until(() => frames.length === 3)
    await stream.append('late')
    await until(() => frames.length === 4)
    vi.advanceTimersByTime(1_000)
    await Promise.all([drained, ended])
    expect(summary(frames)).toEqual(['message', 'message', 'advice', 'advice', '503 server_draining'])
  })

  it('acknowledges what an append session has sent, with the advice, then ends it', async () => {
    const { handler, append, stream } = await startHandler()
    const { frames, ended, send } = append()
    send('a')
    await until(() => frames.length === 1)
    const drained = handler.drain()
    send('b')
    await until(() => frames.length === 2)
    vi.advanceTimersByTime(1_000)
    await Promise.all([drained, ended])
    send('c')
    expect(summary(frames)).toEqual(['message', 'advice', '503 server_draining'])
    expect((await stream.checkTail()).seqNum).toBe(3)
  })

  it('ends an append session behind the acks that it owes', async () => {
    const storage = gated(testStorage())
    const { handler, append, stream } = await startHandler(storage)
    const { frames, ended, send } = append()
    send('a')
    await until(() => frames.length === 1)
    storage.holding = true
    send('b')
    await until(() => storage.held > 0)
    const drained = handler.drain()
    vi.advanceTimersByTime(1_000)
    send('not taken')
    expect(summary(frames)).toEqual(['message'])
    storage.release()
    await Promise.all([drained, ended])
    expect(summary(frames)).toEqual(['message', 'advice', '503 server_draining'])
    expect((await stream.checkTail()).seqNum).toBe(3)
  })

  it('ends Server-Sent Events with an error event', async () => {
    const { handler, read } = await startHandler()
    const { text, ended } = read(EVENTS)
    await until(() => text().includes('event: ping'))
    const drained = handler.drain()
    vi.advanceTimersByTime(1_000)
    await Promise.all([drained, ended])
    const last = text().trimEnd().split('\n\n').at(-1)
    expect(last).toMatch(/^event: error\ndata: \{"code":"server_draining"/)
  })

  it('rejects further sessions, and serves other requests', async () => {
    const { handler, session } = await startHandler()
    await handler.drain()
    const get = (headers: object) => http2Fetch(session, { ':path': `${RECORDS}?seq_num=0`, ...headers })
    const post = { ':path': RECORDS, ':method': 'POST', ...FRAMES }
    for (const { headers, body } of [
      await get(FRAMES),
      await get(EVENTS),
      await http2Fetch(session, post, ''),
    ]) {
      expect([headers[':status'], JSON.parse(body).code]).toEqual([503, 'server_draining'])
    }
    expect((await get({ 'svc-basin': 'basin' })).headers[':status']).toBe(200)
  })
})

describe('a long poll at a server that is about to stop', () => {
  async function startPolls() {
    const { engine } = await openEngine()
    const server = await serve(engine, { auth: 'none', durableStreams: { basin: 'basin', path: '/ds' } })
    onTestFinished(() => server.close({ graceMs: 0 }))
    return { engine, server }
  }

  it.each([
    ['unary read', `${RECORDS}?seq_num=1&wait=60`, 200, '{"records":[]}'],
    ['Durable Streams read', '/ds/polled?live=long-poll&offset=now', 204, ''],
  ])('ends at once as after its wait: %s', async (_kind, path, status, body) => {
    const { engine, server } = await startPolls()
    await fetch(`${server.url}/ds/polled`, { method: 'PUT', headers: { 'content-type': 'text/plain' } })
    const waiting = fetch(server.url + path, { headers: { 'svc-basin': 'basin' } })
    await until(() => engine.stats().openReads === 1)
    // The server would wait for the poll.
    await server.close({ graceMs: 600_000 })
    const reply = await waiting
    expect([reply.status, await reply.text()]).toEqual([status, body])
  })
})

describe('a client whose server is replaced', () => {
  async function startPair(options: Partial<ConnectOptions> = {}) {
    const { engine, stream } = await openEngine()
    const servers = await Promise.all([0, 1].map(() => serve(engine, { auth: 'none' })))
    const [old, next] = servers as [(typeof servers)[0], (typeof servers)[0]]
    onTestFinished(async () => {
      for (const server of servers) await server.close({ graceMs: 0 })
    })
    let port = old.port
    const relay = await startRelay(() => port)
    const failures: unknown[] = []
    const hw = await connect({ url: relay.url, onRetry: (error) => failures.push(error), ...options })
    onTestFinished(() => hw.close())
    const replace = () => {
      port = next.port
      // The server waits for clients that do not leave.
      return old.close({ graceMs: 600_000 })
    }
    return { ofEngine: stream, stream: hw.basin('basin').stream('stream'), replace, failures }
  }

  it.each<[string, Partial<ConnectOptions>]>([
    ['HTTP/2', {}],
    ['fetch', { http2: false }],
  ])('follows over another connection, without a failure, over %s', async (_transport, options) => {
    const { stream, ofEngine, replace, failures } = await startPair(options)
    const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    expect((await following.next()).value?.body).toBe('before')
    const next = following.next()
    await replace()
    await ofEngine.append('after')
    expect((await next).value?.body).toBe('after')
    expect(failures).toEqual([])
    await following.return()
  })

  it('appends over another connection, without a failure', async () => {
    const { stream, ofEngine, replace, failures } = await startPair()
    const session = await stream.appendSession()
    await (await session.submit('a')).ack()
    const replaced = replace()
    for (const body of ['b', 'c', 'd']) await (await session.submit(body)).ack()
    await replaced
    await (await session.submit('e')).ack()
    await session.close()
    const { records } = await ofEngine.readBatch()
    expect(records.map(({ body }) => body)).toEqual(['before', 'a', 'b', 'c', 'd', 'e'])
    expect(failures).toEqual([])
  })
})
