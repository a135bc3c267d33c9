import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { SyncedStream } from '../../adapters/sync/synced-stream.ts'
import { syncedStream } from '../../adapters/sync/synced-stream.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import { contentOf, openBoth, openDevice, openServer, until } from './mirrored.ts'
import { holdableReads, isPost, isRead } from './outboxes.ts'

test.each([
  ['shorter', ['x']],
  ['equally long', ['x', 'y', 'z']],
  ['longer', ['1', '2', '3', '4', '5']],
])('nothing is sent to another stream that is %s, until the app begins again', async (_, bodies) => {
  const { origin, network, clock, startSynced } = await openBoth()
  await origin.append(['a', 'b', 'c'])
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  await origin.delete()
  await origin.append(bodies)
  await until(synced.mirror, 'stopped', clock)
  network.delay('1ms')
  await synced.append('mine')
  await clock.advance('10m')
  expect(network.log).toEqual([])
  expect(synced.outbox.state.kind).toBe('idle')
  network.heal()
  await synced.mirror.restart()
  await until(synced.mirror, 'live', clock)
  await clock.advance('1m')
  const { records } = await contentOf(origin)
  expect(records).toHaveLength(bodies.length + 1)
  expect((await synced.read().toArray()).map(({ body }) => body)).toEqual([...bodies, 'mine'])
})

test('nothing is sent before the copy is live again, for which it waits as long as the server asks', async () => {
  const { origin, server, network, clock, startSynced } = await openBoth()
  await origin.append('a')
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  network.respond(429, { headers: { 'retry-after': '60' }, when: isRead })
  await server.restart()
  await clock.advance('1s')
  const { state } = synced
  expect(state).toMatchObject({ kind: 'offline', error: { retryAfterMs: 60_000 } })
  await synced.append('mine')
  await clock.advance('50s')
  expect((await server.stream.checkTail()).seqNum).toBe(1)
  expect(synced.state).toBe(state)
  network.heal()
  await clock.advance('2m')
  expect((await synced.read().toArray()).map(({ isPending }) => isPending)).toEqual([false, false])
})

test('a record in a stream created again is pending while the copy is of the one before', {
  tags: ['slow'],
}, async () => {
  const { origin, network, clock, startSynced } = await openBoth()
  const synced = startSynced()
  network.delay('30s', { nth: 1, when: ({ method }) => method === 'POST' })
  await synced.append('mine')
  await clock.settle()
  await origin.append('a')
  await until(synced.mirror, 'live', clock)
  const texts = async () => (await synced.read().toArray()).map(({ body, isPending }) => [body, isPending])
  expect(await texts()).toEqual([
    ['a', false],
    ['mine', true],
  ])
  // The mirror does not notice that the stream is another one, in which the append finds its position.
  network.delay('1h', { when: ({ method }) => method === 'GET' })
  await origin.delete()
  await origin.readBatch({}, { create: true })
  await clock.advance('1m')
  expect((await origin.read().toArray()).map(({ body }) => body)).toEqual(['mine'])
  expect(await texts()).toEqual([
    ['a', false],
    ['mine', true],
  ])
  await clock.advance('5m')
  network.heal()
  await clock.advance('2h')
  expect(synced.mirror.state).toMatchObject({ kind: 'stopped', reason: 'replaced' })
  await synced.mirror.restart()
  await until(synced.mirror, 'live', clock)
  await clock.advance('1m')
  expect(await texts()).toEqual([['mine', false]])
  expect((await contentOf(origin)).records).toHaveLength(1)
})

/** The records of a synced stream: pending ones in parentheses. */
async function shownBy(synced: SyncedStream): Promise<string[]> {
  const records = await synced.read().toArray()
  return records.map(({ body, isPending }) => (isPending ? `(${body})` : body))
}

test('what a deleted stream has acknowledged before it was copied is not pending in a shorter one', async () => {
  const { origin, remote, clock, startSynced } = await openBoth()
  await origin.readBatch({}, { create: true })
  const reads = holdableReads(remote)
  const first = startSynced()
  await until(first.mirror, 'live', clock)
  reads.hold()
  const appended = await Promise.all(['a', 'b', 'c'].map((body) => first.append(body)))
  await clock.advance('1m')
  for (const { confirmed } of appended) await confirmed()
  expect(await shownBy(first)).toEqual(['(a)', '(b)', '(c)'])
  await first.close()
  await origin.delete()
  await origin.append('new')
  reads.release()
  const next = startSynced()
  await until(next.mirror, 'live', clock)
  await clock.advance('1m')
  expect(await shownBy(next)).toEqual(['new'])
  expect(next.outbox.failed).toEqual([])
})

test('what is acknowledged late is not pending in a copy that begins behind it', async () => {
  const { origin, remote, network, clock, startSynced } = await openBoth()
  await origin.append('a')
  const reads = holdableReads(remote)
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  await synced.append('b')
  await clock.settle()
  reads.hold()
  network.loseResponse({ when: isPost })
  const { confirmed } = await synced.append('c')
  await clock.settle()
  network.heal()
  reads.release()
  await synced.mirror.restart({ from: { tailOffset: 0 } })
  await clock.advance('1m')
  expect(await confirmed()).toMatchObject({ start: { seqNum: 2 } })
  expect(await shownBy(synced)).toEqual([])
})

test('a record is shown while it is noted as found and not copied, also without a network', async () => {
  const server = await openServer()
  const { clock, network } = server
  await server.stream.readBatch({}, { create: true })
  const storage = faultyStorage(memory())
  const device = await openDevice(server, storage)
  const synced = device.startSynced()
  await until(synced.mirror, 'live', clock)
  const shown: number[] = []
  const watching = synced.view$.subscribe(({ length }) => shown.push(length))
  await synced.append('x')
  // Three notes of the sender, and one of what is found.
  storage.fail('append', { nth: 5, kind: 'io' })
  await clock.settle()
  const entries = [...synced.outbox.log.state.entries.values()]
  expect(entries).toMatchObject([{ isFound: true }])
  expect(await shownBy(synced)).toEqual(['(x)'])
  watching.unsubscribe()
  expect(shown.slice(shown.indexOf(1))).toEqual(shown.slice(shown.indexOf(1)).map(() => 1))
  network.refuse()
  await synced.close()
  storage.heal()
  expect(await shownBy(device.startSynced())).toEqual(['(x)'])
})

test.each([
  ['sequence number', { seqNum: 2 }],
  ['time', { timestamp: new Date(Date.UTC(2025, 0, 1, 1)) }],
])('a view from a %s waits for a copy that does not have it yet', async (_, query) => {
  const { origin, clock, startSynced } = await openBoth()
  await origin.append(['a', 'b'])
  await clock.advance('1h')
  await origin.append(['c', 'd'])
  const synced = startSynced()
  const shown = new Set<string>()
  const ends: unknown[] = []
  const onEnd = (error?: unknown) => ends.push(error)
  const next = (view: Iterable<{ readonly body: string }>) => {
    shown.add(Array.from(view, ({ body }) => body).join(' '))
  }
  const subscription = synced.view(query).subscribe({ next, error: onEnd, complete: onEnd })
  await until(synced.mirror, 'live', clock)
  expect([...shown].at(-1)).toBe('c d')
  shown.clear()
  await synced.mirror.restart()
  await until(synced.mirror, 'live', clock)
  await clock.settle()
  expect([...shown].at(-1)).toBe('c d')
  expect([...shown].filter((text) => text.includes('a'))).toEqual([])
  expect(ends).toEqual([])
  subscription.unsubscribe()
})

test('a name beside which no outbox can be stored is refused', async () => {
  const { hw, server, startSynced } = await openBoth()
  const name = 'x'.repeat(504)
  const remote = server.hw.basin('basin')
  const local = hw.basin('basin')
  const long = startSynced({}, { remote: remote.stream(name), local: local.stream(name) })
  expect((await long.append('fits')).number).toBeGreaterThan(0)
  expect(() =>
    startSynced({}, { remote: remote.stream(`${name}y`), local: local.stream(`${name}y`) }),
  ).toThrow(
    expect.objectContaining({ code: 'invalid', field: 'local', message: expect.stringContaining('504') }),
  )
})

test.each([
  [{ from: { tailOffset: -1 } }, 'tailOffset'],
  [{ from: { count: 1 } }, 'from.count'],
  [{ recordsMax: 0 }, 'recordsMax'],
] as const)('the options %j are refused before anything is stored or sent', async (options, field) => {
  const { hw, remote, local, clock } = await openBoth()
  const start = () => syncedStream(remote, local, options as object)
  expect(start).toThrow(expect.objectContaining({ code: 'invalid', field }))
  await clock.advance('1m')
  await expect(hw.listBasins()).resolves.toMatchObject({ items: [] })
})

test('streams that are missing or the same are refused', async () => {
  const { local, hw } = await openBoth()
  const refused = (field: string) => expect.objectContaining({ code: 'invalid', field })
  expect(() => syncedStream(undefined!, local)).toThrow(refused('remote'))
  expect(() => syncedStream(local, undefined!)).toThrow(refused('local'))
  expect(() => syncedStream(local, hw.basin('basin').stream('stream'))).toThrow(refused('local'))
})

test('what is neither a schema nor options of a JSON view is refused', async () => {
  const { startSynced } = await openBoth()
  const synced = startSynced()
  for (const given of [5, 'schema', null, { onUndecodable: 5 }, { schema: {} }]) {
    expect(() => synced.json(given as object)).toThrow(expect.objectContaining({ code: 'invalid' }))
  }
  expect(() => synced.read({}, { signal: 5 } as object)).toThrow(
    expect.objectContaining({ code: 'invalid', field: 'signal' }),
  )
})

test.each(['synced', 'hw'] as const)('reads end if %s closes before the outbox has loaded', async (by) => {
  const { hw, clock, startSynced } = await openBoth()
  const synced = startSynced()
  const ends: unknown[] = []
  const end = (error?: unknown) => ends.push(error)
  const read = () => {
    synced.read().toArray().catch(end)
    synced.view$.subscribe({ error: end, complete: () => end('complete') })
  }
  read()
  await { synced, hw }[by].close()
  read()
  await clock.settle()
  const isView = (each: unknown) => each === 'complete'
  expect(ends.filter(isView)).toHaveLength(2)
  expect(ends.filter((each) => !isView(each))).toMatchObject([{ code: 'closed' }, { code: 'closed' }])
})

test('the wait for its end stops when the signal aborts', async () => {
  const { startSynced } = await openBoth()
  const synced = startSynced()
  await expect(synced.close({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  await synced.close()
  expect(synced.mirror.state.kind).toBe('closed')
})

test.each([
  ['without', true],
  ['with', false],
])('sends beside a writer that appends twenty times a second, %s producers', async (_, ignoresProducers) => {
  for (let seed = 1; seed <= 6; seed++) {
    const { server, origin, network, clock, startSynced } = await openBoth()
    server.settings.ignoresProducers = ignoresProducers
    const prng = new Prng(seed)
    await origin.append('first')
    network.delay('15ms')
    network.delay('15ms', { after: true })
    const synced = startSynced({ random: () => prng.next() })
    await until(synced.mirror, 'live', clock)
    let confirmedAfter: number | undefined
    const start = clock.now()
    const sending = synced.append('mine').then(async (appended) => {
      await appended.confirmed()
      confirmedAfter = clock.now() - start
    })
    while (confirmedAfter === undefined && clock.now() - start < 20_000) {
      if (prng.next() < 0.4) void origin.append('other')
      await clock.advance('20ms')
    }
    expect(confirmedAfter).toBeLessThan(20_000)
    network.heal()
    await sending
    await synced.close()
  }
})

test('sends though records arrive faster than the device stores them', async () => {
  const server = await openServer()
  const { clock, stream, network } = server
  await stream.append('first')
  const storage = faultyStorage(memory())
  const { startSynced } = await openDevice(server, storage)
  const synced = startSynced()
  await synced.append('before')
  await until(synced.mirror, 'live', clock)
  await synced.outbox.flush()
  network.refuse()
  await server.restart()
  await clock.settle()
  network.heal()
  storage.delay('append', '300ms')
  const shown: string[] = []
  const sending = synced.append('mine').then(({ confirmed }) => confirmed())
  for (let appends = 0; appends < 200; appends++) {
    await server.stream.append('other')
    await clock.advance('100ms')
    shown.push(synced.state.kind)
  }
  // What is left, and the end of the test, need no time.
  storage.heal()
  await clock.advance('1m')
  const { start } = await sending
  expect(shown.at(-1)).toBe('live')
  expect(start.seqNum).toBeLessThan(200)
})
