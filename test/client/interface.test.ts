import { describe, expect, it, onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import type { Headwater } from '../../src/api/headwater.ts'
import { type Engine, type HeadwaterError, type OpenOptions, open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { bodies, outcomeOf, testClock, testStorage } from '../support/index.ts'
import { plainRequest } from './network.ts'

/**
 * How a client reaches an engine: a handler without a socket, with read sessions in frames or as events, or a
 * server with HTTP/1.1 only or with HTTP/2 for sessions.
 */
const KINDS = ['handler', 'events', 'http1', 'http2'] as const
type Kind = (typeof KINDS)[number]

/** A client of an engine. */
interface Connected {
  readonly hw: Headwater
  readonly engine: Engine
  /** The clock of the engine, and of the client unless they are connected by sockets. */
  readonly clock: VirtualClock
}

interface OpenConnectedOptions {
  readonly engine?: Partial<OpenOptions>
  readonly handler?: HandlerOptions
  readonly client?: Partial<ConnectOptions>
}

/** Opens an engine, makes it reachable and connects to it. Everything is closed at the end of the test. */
async function openConnected(kind: Kind, options: OpenConnectedOptions = {}): Promise<Connected> {
  const clock = testClock({ now: 1_000_000 })
  const engine = await open({ storage: testStorage(), usage: usageMetrics(), clock, ...options.engine })
  const handlerOptions: HandlerOptions = { auth: 'none', ...options.handler }
  if (kind === 'handler' || kind === 'events') {
    const handler = createHandler(engine, handlerOptions)
    const hw = await connect({
      url: 'http://localhost',
      fetch: kind === 'events' ? (request) => handler(plainRequest(request)) : handler,
      clock,
      random: () => 0.5,
      ...options.client,
    })
    onTestFinished(async () => {
      await hw.close()
      await engine.close()
    })
    return { hw, engine, clock }
  }
  const server = await serve(engine, { port: 0, ...handlerOptions })
  const hw = await connect({
    url: server.url,
    ...(kind === 'http1' && { fetch: (request: Request) => fetch(request) }),
    ...options.client,
  })
  onTestFinished(async () => {
    await hw.close()
    await server.close()
    await engine.close()
  })
  return { hw, engine, clock }
}

describe.each(KINDS)('a client over %s', (kind) => {
  it('appends to a stream that it creates, and reads what it appended', async () => {
    const { hw } = await openConnected(kind)
    const stream = hw.basin('my-app').stream('chats/42')
    expect(
      await stream
        .read()
        .toArray()
        .catch((error) => error.code),
    ).toBe('basin_not_found')
    const ack = await stream.append(['a', { body: 'b', headers: [['k', 'v']] }])
    expect([ack.start.seqNum, ack.end.seqNum, ack.tail.seqNum]).toEqual([0, 2, 2])
    const records = await stream.read().toArray()
    expect(records.map(({ seqNum, body }) => [seqNum, body])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ])
    expect(records[1]!.headers).toEqual([['k', 'v']])
    expect(await stream.checkTail()).toEqual(ack.tail)
    const bytes = await stream.readBatch({ seqNum: 1 }, { as: 'bytes' })
    expect(bytes.records[0]!.body).toEqual(new TextEncoder().encode('b'))
    expect(bytes.tail).toEqual(ack.tail)
  })

  it('keeps the order of appends that are not awaited', async () => {
    const { hw } = await openConnected(kind)
    const stream = hw.basin('my-app').stream('s')
    const numbers = Array.from({ length: 20 }, (_, i) => `${i}`)
    await Promise.all(numbers.map((body) => stream.append(body)))
    expect(bodies(await stream.readBatch())).toEqual(numbers)
  })

  it('creates, ensures, lists, changes and deletes basins and streams', async () => {
    const { hw, engine } = await openConnected(kind)
    expect((await hw.createBasin('a')).result).toBe('created')
    expect((await hw.createBasin('basin-of-tests')).result).toBe('created')
    expect(await outcomeOf(hw.createBasin('a'))).toBe('resource_already_exists')
    expect(await outcomeOf(hw.createBasin('basin-of-tests'))).toBe('resource_already_exists')
    expect((await hw.ensureBasin('a')).result).toBe('noop')
    expect((await hw.ensureBasin('a', { createStreamOnRead: true })).result).toBe('updated')
    expect((await hw.listBasins({ limit: 1 })).hasMore).toBe(true)
    const names = []
    for await (const { name } of hw.listAllBasins({ prefix: '' })) names.push(name)
    expect(names).toEqual(['a', 'basin-of-tests'])
    const basin = hw.basin('basin-of-tests')
    expect(await basin.config()).toEqual(await engine.basin('basin-of-tests').config())
    expect((await basin.createStream('a/b', { deleteOnEmpty: { minAgeSeconds: 5 } })).info.cipher).toBeNull()
    expect((await basin.ensureStream('c')).result).toBe('created')
    expect((await basin.listStreams({ prefix: 'a' })).items.map(({ name }) => name)).toEqual(['a/b'])
    expect(await basin.stream('a/b').config()).toEqual({
      retentionPolicy: 'infinite',
      timestamping: { mode: 'client-prefer', uncapped: false },
      deleteOnEmpty: { minAgeSeconds: 5 },
    })
    await basin.stream('a/b').reconfigure({ retentionPolicy: { ageSeconds: 9 }, deleteOnEmpty: null })
    expect(await basin.stream('a/b').config()).toEqual(
      await engine.basin('basin-of-tests').stream('a/b').config(),
    )
    await basin.stream('a/b').delete()
    expect(await basin.stream('a/b').exists()).toBe(false)
    await basin.delete()
    expect(await outcomeOf(basin.createStream('late'))).toMatch(/^basin_(deletion_pending|not_found)$/)
  })

  it('leaves the retention to the server with the option `defaultRetention`', async () => {
    const { hw, engine } = await openConnected(kind, {
      handler: { retention: { ageSeconds: 60 } },
      client: { defaultRetention: 'server' },
    })
    for (const name of ['a', 'basin-of-tests']) await hw.createBasin(name)
    await hw.ensureBasin('ensured')
    for (const name of ['a', 'basin-of-tests', 'ensured']) {
      await hw.basin(name).createStream('s')
      const { retentionPolicy } = await engine.basin(name).stream('s').config()
      expect(retentionPolicy).toEqual({ ageSeconds: 60 })
    }
  })

  it('reports the errors of the engine with their details', async () => {
    const { hw } = await openConnected(kind)
    const stream = hw.basin('my-app').stream('s')
    await stream.append('a')
    await stream.fence('me')
    const errors = await Promise.all(
      [
        stream.append('x', { matchSeqNum: 7 }),
        stream.append('x', { fencingToken: 'other' }),
        stream.read({ seqNum: 9 }).toArray(),
        hw.basin('my-app', { autoCreate: false }).stream('no').append('x'),
        hw.basin('nowhere').stream('s').checkTail(),
      ].map((call) => (call as Promise<unknown>).catch((error: HeadwaterError) => error)),
    )
    expect(errors).toMatchObject([
      { code: 'seq_num_mismatch', seqNum: 2, mayHaveEffects: false },
      { code: 'fencing_token_mismatch', fencingToken: 'me' },
      { code: 'range_not_satisfiable', tail: { seqNum: 2 } },
      { code: 'stream_not_found' },
      { code: 'basin_not_found' },
    ])
  })

  it('follows a stream, in order and with heartbeats', async () => {
    const { hw } = await openConnected(kind)
    const stream = hw.basin('my-app').stream('s')
    await stream.append(['a', 'b'])
    const events = stream.follow({ seqNum: 0 }).events()
    expect((await events.next()).value).toMatchObject({ kind: 'batch', batch: { count: 2 } })
    expect((await events.next()).value).toMatchObject({ kind: 'heartbeat', tail: { seqNum: 2 } })
    await stream.append('c')
    expect((await events.next()).value).toMatchObject({ kind: 'batch', batch: { lastSeqNum: 2 } })
    await events.return()
    const live = stream.follow()[Symbol.asyncIterator]()
    const first = live.next()
    await stream.append('d')
    // It may have begun before or after the append.
    await stream.append('e')
    expect(['d', 'e']).toContain((await first).value!.body)
    await live.return()
  })

  it('appends in sessions, and discards what follows a failed batch', async () => {
    const { hw } = await openConnected(kind)
    const stream = hw.basin('my-app').stream('s')
    const session = await stream.appendSession()
    const tickets = [
      await session.submit('a'),
      await session.submit('refused', { matchSeqNum: 7 }),
      await session.submit('behind'),
    ]
    const codes = await Promise.all(tickets.map((ticket) => outcomeOf(ticket.ack())))
    expect(codes).toEqual(['ok', 'seq_num_mismatch', 'append_discarded'])
    expect(await outcomeOf(session.close())).toBe('seq_num_mismatch')
    expect(bodies(await stream.readBatch())).toEqual(['a'])
    const acks = []
    for await (const ack of stream.appendAll(['b', ['c', 'd']])) acks.push(ack.end.seqNum)
    expect(acks).toEqual([2, 4])
    const producer = stream.producer()
    const accepted = await Promise.all(['e', 'f'].map((body) => producer.submit(body)))
    await producer.close()
    const records = await Promise.all(accepted.map((ticket) => ticket.ack()))
    expect(records.map(({ seqNum }) => seqNum)).toEqual([4, 5])
  })

  it('reads empty streams, and moves late starts, as in process', async () => {
    const { hw, engine } = await openConnected(kind)
    await hw.ensureBasin('my-app')
    const stream = hw.basin('my-app').stream('s')
    expect(await stream.read(undefined, { create: true }).toArray()).toEqual([])
    expect(await stream.readBatch()).toMatchObject({ count: 0, tail: { seqNum: 0 } })
    expect(await stream.read().toArray()).toEqual([])
    await stream.append('a')
    expect(await stream.read({ seqNum: 1 }).toArray()).toEqual([])
    expect(await stream.read({ timestamp: 9e12 }).toArray()).toEqual([])
    expect(await stream.read({ seqNum: 5, clamp: true }).toArray()).toEqual([])
    expect(await outcomeOf(stream.readBatch({ seqNum: 5 }))).toBe('range_not_satisfiable')
    const late = stream.follow({ timestamp: 9e12 }).batches()
    const next = late.next()
    await expect.poll(() => engine.stats().waitingReads).toBe(1)
    await stream.append('b')
    expect(bodies((await next).value!)).toEqual(['b'])
    await late.return()
  })
})
