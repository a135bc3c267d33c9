import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { serve, toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { encodeTerminalFrame } from '../../src/wire/frame.ts'
import { bodies, outcomeOf, testClock, testStorage } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { startRelay } from '../support/relay.ts'
import { failureOf } from './network.ts'

async function connected(url: string, options: Partial<ConnectOptions> = {}) {
  const hw = await connect({ url, random: () => 0, ...options })
  onTestFinished(() => hw.close())
  return { hw, stream: hw.basin('basin').stream('stream') }
}

/** A server, and a client of it behind a relay. The engine has the stream of the client. */
async function startRelayed(options: Partial<ConnectOptions> = {}, portsBefore: number[] = []) {
  const engine = await open({ storage: testStorage() })
  await engine.ensureBasin('basin')
  const ofEngine = engine.basin('basin').stream('stream')
  await engine.basin('basin').ensureStream('stream')
  const server = await serve(engine, { port: 0, auth: 'none' })
  onTestFinished(async () => {
    await server.close({ graceMs: 0 })
    await engine.close()
  })
  const relay = await startRelay(() => portsBefore.shift() ?? server.port)
  const stored = async () => bodies(await ofEngine.readBatch())
  const untilStored = (count: number) =>
    expect.poll(async () => (await ofEngine.checkTail()).seqNum).toBe(count)
  return { engine, ofEngine, server, relay, stored, untilStored, ...(await connected(relay.url, options)) }
}

describe('sessions in Node', () => {
  it('use HTTP/2, and end with the client', async () => {
    const { server, hw, stream } = await startRelayed()
    const session = await stream.appendSession()
    const tickets = []
    for (let i = 0; i < 5; i++) tickets.push(await session.submit(`${i}`))
    await Promise.all(tickets.map((ticket) => ticket.ack()))
    const following = failureOf(stream.follow().toArray())
    await expect.poll(() => server.counts().requests).toBe(2)
    await session.close()
    await expect.poll(() => server.counts().requests).toBe(1)
    await hw.close()
    expect(await following).toMatchObject({ message: 'the client is closed' })
    await expect.poll(() => server.counts().requests).toBe(0)
  })

  it('use as many connections as their number takes', { tags: ['slow'] }, async () => {
    const { server, stream } = await startRelayed()
    const iterators = Array.from({ length: 150 }, () => stream.follow().events())
    await Promise.all(iterators.map((events) => events.next()))
    expect(server.counts().requests).toBe(150)
    await Promise.all(iterators.map((events) => events.return()))
  })

  it('use HTTP/1.1 where a server speaks nothing else', async () => {
    const engine = await open({ storage: testStorage() })
    onTestFinished(() => engine.close())
    const url = await listening(createServer(toNodeHandler(engine, { auth: 'none' })))
    const { stream } = await connected(url)
    await stream.append('a')
    const session = await stream.appendSession()
    await session.submit('b')
    await session.close()
    const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    expect([(await following.next()).value?.body, (await following.next()).value?.body]).toEqual(['a', 'b'])
    await following.return()
  })

  it.each(['end', 'resetAndDestroy'] as const)('use HTTP/1.1 where a server answers by %s', async (close) => {
    const engine = await open({ storage: testStorage() })
    onTestFinished(() => engine.close())
    const server = createServer(toNodeHandler(engine, { auth: 'none' }))
    server.on('clientError', (_, socket) => void (socket as Socket)[close]())
    const { stream } = await connected(await listening(server))
    await stream.append('a')
    const session = await stream.appendSession()
    await session.submit('b')
    await session.close()
    expect(bodies(await stream.readBatch())).toEqual(['a', 'b'])
    expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['a', 'b'])
  })

  it('use HTTP/2 although their first connection was lost before an answer', async () => {
    const stopping = new URL(await listening(createTcpServer((socket) => void socket.end())))
    const { server, stream } = await startRelayed({}, [Number(stopping.port)])
    const session = await stream.appendSession()
    await (await session.submit('a')).ack()
    expect(server.counts().http2Sessions).toBe(1)
    await session.close()
  })

  it('continue over another connection while nothing is in flight', async () => {
    const { server, relay, stream, stored } = await startRelayed()
    const session = await stream.appendSession()
    await (await session.submit('a')).ack()
    relay.cut()
    await expect.poll(() => server.counts().requests).toBe(0)
    await (await session.submit('b')).ack()
    await session.close()
    expect(await stored()).toEqual(['a', 'b'])
  })

  it('store batches with conditions once, although the connection is lost', async () => {
    const { relay, stream, stored, untilStored } = await startRelayed()
    const session = await stream.appendSession()
    relay.keepReplies(true)
    const tickets = []
    for (let i = 0; i < 5; i++) tickets.push(await session.submit(`${i}`, { matchSeqNum: i }))
    await untilStored(5)
    relay.keepReplies(false)
    relay.cut()
    const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
    expect(acks.map(({ start }) => start.seqNum)).toEqual([0, 1, 2, 3, 4])
    await (await session.submit('more')).ack()
    await session.close()
    expect(await stored()).toEqual(['0', '1', '2', '3', '4', 'more'])
  })

  it('report an unknown outcome of batches without conditions', async () => {
    const { relay, stream, untilStored } = await startRelayed()
    const session = await stream.appendSession()
    relay.keepReplies(true)
    const tickets = [await session.submit('a'), await session.submit('b')]
    await untilStored(2)
    relay.cut()
    const errors = await Promise.all(tickets.map((ticket) => failureOf(ticket.ack())))
    for (const error of errors) expect(error).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
    expect(await outcomeOf(session.close())).toBe('unavailable')
  })

  it('fail when no ack comes in time, counted from the last ack', async () => {
    const clock = testClock()
    const { relay, stream } = await startRelayed({ clock, requestTimeoutMs: 10_000, retries: 0 })
    const session = await stream.appendSession()
    await (await session.submit('a')).ack()
    await clock.advance(6_000)
    await (await session.submit('b')).ack()
    await clock.advance(1_000)
    relay.keepReplies(true)
    const ticket = await session.submit('c')
    let failure: unknown
    ticket.ack().catch((error: unknown) => {
      failure = error
    })
    await clock.advance(9_999)
    expect(failure).toBeUndefined()
    await clock.advance(1)
    await expect.poll(() => failure).toMatchObject({ code: 'unavailable', mayHaveEffects: true })
    expect(String(failure)).toContain('no acknowledgement within 10 seconds')
  })

  it('report an unknown outcome of batches without an ack five seconds after the client was closed', async () => {
    const clock = testClock()
    const { relay, hw, stream, untilStored } = await startRelayed({ clock })
    const session = await stream.appendSession()
    relay.keepReplies(true)
    const ack = failureOf((await session.submit('a')).ack())
    await untilStored(1)
    const closing = hw.close()
    await clock.advance('5s')
    await closing
    expect(await ack).toMatchObject({ code: 'closed', mayHaveEffects: true })
  })

  it('pause, and fail in the end, while the server ends each append session because it is about to stop', async () => {
    let sessions = 0
    const draining = createHttp2Server()
    draining.on('stream', (session) => {
      sessions++
      session.on('error', () => {})
      session.respond({ ':status': 200, 'content-type': 'svcs/proto' })
      session.once('data', () => {
        session.end(encodeTerminalFrame(503, '{"code":"server_draining","message":"stopping"}'))
      })
    })
    const url = await listening(draining)
    const clock = testClock()
    const delays: number[] = []
    const options = { clock, retries: 2, onRetry: (_: unknown, ms: number) => void delays.push(ms) }
    const { stream } = await connected(url, { ...options, random: () => 0.5 })
    const session = await stream.appendSession()
    const ticket = await session.submit('a')
    let failure: unknown
    ticket.ack().catch((error: unknown) => {
      failure = error
    })
    await expect.poll(() => delays).toEqual([50])
    expect(sessions).toBe(2)
    await clock.advance(50)
    await expect.poll(() => delays).toEqual([50, 100])
    await clock.advance(100)
    await expect.poll(() => failure).toMatchObject({ code: 'server_draining', mayHaveEffects: false })
    expect(sessions).toBe(4)
    expect(await outcomeOf(session.close())).toBe('server_draining')
  })

  it('end reads if another stream has taken the name before they resume', async () => {
    const clock = testClock()
    const { server, engine, ofEngine, relay, stream } = await startRelayed({ clock, random: () => 0.5 })
    await ofEngine.append(['1', '2', '3'])
    const events = stream.follow({ seqNum: 0 }).batches()
    expect(bodies((await events.next()).value!)).toEqual(['1', '2', '3'])
    const next = failureOf(events.next())
    relay.cut()
    await expect.poll(() => server.counts().requests).toBe(0)
    await ofEngine.delete()
    await engine.basin('basin').createStream('stream')
    await ofEngine.append(['new', 'new', 'new', 'new3', 'new4'])
    await expect.poll(() => clock.pending).toBeGreaterThan(0)
    await clock.advance('1s')
    expect(await next).toMatchObject({ code: 'stream_deleted' })
  })

  it('resume reads after a lost connection', async () => {
    const { server, relay, stream } = await startRelayed()
    // A start at the tail is only known once the first response has arrived.
    const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    const seen: string[] = []
    const reading = (async () => {
      for (let i = 0; i < 6; i++) seen.push((await following.next()).value!.body)
    })()
    await expect.poll(() => server.counts().requests).toBe(1)
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 0) relay.cut()
      await stream.append(`${i}`, { matchSeqNum: i })
    }
    await reading
    expect(seen).toEqual(['0', '1', '2', '3', '4', '5'])
    await following.return()
  })
})
