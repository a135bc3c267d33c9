import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler, type HandlerOptions } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { bodies, outcomeOf, testStorage } from '../support/index.ts'
import { plainRequest } from './network.ts'

/** How a client reaches an engine. The projects `handler` and `server` run tests of the API in other ways. */
const WAYS = ['events', 'HTTP/1.1'] as const

/** Opens an engine, makes it reachable and connects to it. */
async function openConnected(
  way: (typeof WAYS)[number],
  options: { handler?: HandlerOptions; client?: Partial<ConnectOptions> } = {},
) {
  const engine = await open({ storage: testStorage() })
  const handlerOptions = { auth: 'none', ...options.handler } as const
  const handler = createHandler(engine, handlerOptions)
  const server = way === 'HTTP/1.1' ? await serve(engine, { port: 0, ...handlerOptions }) : undefined
  const hw = await connect({
    url: server?.url ?? 'http://localhost',
    fetch: (request) => (server === undefined ? handler(plainRequest(request)) : fetch(request)),
    ...options.client,
  })
  onTestFinished(async () => {
    await hw.close()
    await server?.close()
    await engine.close()
  })
  return { hw, engine }
}

// The first request loads the implementation of `fetch`.
beforeAll(async () => {
  await fetch('data:,')
})

describe.each(WAYS)('a client over %s', (way) => {
  it('appends in order to a stream that it creates, and reads what it appended', async () => {
    const { hw } = await openConnected(way)
    const stream = hw.basin('my-app').stream('chats/42')
    expect(await outcomeOf(stream.read().toArray())).toBe('basin_not_found')
    const numbers = Array.from({ length: 5 }, (_, i) => `${i}`)
    await Promise.all(numbers.map((body) => stream.append(body)))
    const ack = await stream.append({ body: new Uint8Array([0, 255]), headers: [['k', 'v']] })
    expect([ack.start.seqNum, ack.end.seqNum, ack.tail.seqNum]).toEqual([5, 6, 6])
    const batch = await stream.readBatch({}, { as: 'bytes' })
    expect(bodies(batch).slice(0, 5)).toEqual(numbers)
    expect(batch.records.at(-1)!.body).toEqual(new Uint8Array([0, 255]))
    expect((await stream.readBatch({ seqNum: 5 })).records[0]!.headers).toEqual([['k', 'v']])
    expect(await stream.checkTail()).toEqual(ack.tail)
  })

  it('follows a stream, in order and with heartbeats', async () => {
    const { hw } = await openConnected(way)
    const stream = hw.basin('my-app').stream('s')
    await stream.append(['a', 'b'])
    const events = stream.follow({ seqNum: 0 }).events()
    expect((await events.next()).value).toMatchObject({ kind: 'batch', batch: { count: 2 } })
    expect((await events.next()).value).toMatchObject({ kind: 'heartbeat', tail: { seqNum: 2 } })
    await stream.append('c')
    expect((await events.next()).value).toMatchObject({ kind: 'batch', batch: { lastSeqNum: 2 } })
    await events.return()
  })

  it('appends in sessions, and discards what follows a failed batch', async () => {
    const { hw } = await openConnected(way)
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
  })
})

it('leaves the retention to the server with the option `defaultRetention`', async () => {
  const { hw, engine } = await openConnected('events', {
    handler: { retention: { ageSeconds: 60 } },
    client: { defaultRetention: 'server' },
  })
  // A request token is sent for names of 8 characters or more.
  for (const name of ['a', 'basin-of-tests']) await hw.createBasin(name)
  await hw.ensureBasin('ensured')
  for (const name of ['a', 'basin-of-tests', 'ensured']) {
    await hw.basin(name).createStream('s')
    const { retentionPolicy } = await engine.basin(name).stream('s').config()
    expect(retentionPolicy).toEqual({ ageSeconds: 60 })
  }
})
