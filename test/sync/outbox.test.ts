import { expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { Outbox, type OutboxOptions, outbox } from '../../adapters/sync/outbox.ts'
import { syncedStream } from '../../adapters/sync/synced.ts'
import { HeadwaterError } from '../../src/index.ts'
import { gated } from '../support/index.ts'
import { openBoth, openDevice, openServer, type Server } from './mirrored.ts'

type Device = Awaited<ReturnType<typeof openDevice>>

function startOn({ hw, remote }: Pick<Device, 'hw' | 'remote'>, options: OutboxOptions = {}): Outbox {
  const log = hw.basin('basin').stream('.outbox/stream')
  const box = outbox(log, remote, { random: () => 0.5, coordinator: coordinateInThread, ...options })
  onTestFinished(() => box.close())
  return box
}

/** A server with an empty stream, and a device with an outbox. */
async function openOutbox(options: OutboxOptions = {}) {
  const both = await openBoth()
  await both.origin.readBatch({}, { create: true })
  return { ...both, box: startOn(both, options) }
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`)
const bodies = async (server: Server) => (await server.stream.read().toArray()).map(({ body }) => body)

test('records appended while the server cannot be reached arrive in order, once each', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.refuse()
  await box.append('one')
  await box.append(['two', 'three'])
  const last = await box.append('four')
  await clock.advance('10s')
  expect(box.state.kind).toBe('offline')
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['one', 'two', 'three', 'four'])
  expect(await last.confirmed()).toMatchObject({ start: { seqNum: 3 }, end: { seqNum: 4 } })
  expect(box.state.kind).toBe('idle')
})

test('each record has the header that identifies it, after its own', async () => {
  const { box, clock, server } = await openOutbox()
  const { number } = await box.append({ body: 'x', headers: [['kind', 'note']] })
  await clock.settle()
  const [record] = await server.stream.read().toArray()
  expect(record!.headers).toEqual([
    ['kind', 'note'],
    ['headwater-origin', `${box.device}/${number}`],
  ])
})

test('a record keeps the timestamp that the app gave', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.refuse()
  await box.append([{ body: 'old', timestamp: 1_000 }, { body: 'older', timestamp: new Date(500) }, 'new'])
  const now = clock.now()
  expect(box.content.waiting.map(({ item }) => item.record.timestamp)).toEqual([1_000, 500, now])
  await clock.advance('1h')
  network.heal()
  await clock.advance('1m')
  const timestamps = (await server.stream.read().toArray()).map(({ timestamp }) => timestamp)
  // The server keeps timestamps in order.
  expect(timestamps.slice(0, 2)).toEqual([1_000, 1_000])
  expect(timestamps[2]).toBeGreaterThanOrEqual(now + 3_600_000)
})

test('a lost response is not sent twice', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.loseResponse({ when: ({ method }) => method === 'POST', nth: 1 })
  const appended = await box.append('x')
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['x'])
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 0 } })
})

test('a first attempt that arrives after a second one is not stored', async () => {
  const { box, clock, network, server, remote } = await openOutbox()
  const late: (() => Promise<unknown>)[] = []
  const isAppend = ({ method }: Request) => method === 'POST'
  // The first request is lost for the client, but not for the network.
  const held = new Promise<void>((resolve) => {
    network.drop({
      nth: 1,
      when: (request) => {
        if (!isAppend(request)) return false
        const copy = request.clone()
        late.push(() => server.handle(copy))
        resolve()
        return true
      },
    })
  })
  await box.append('x')
  await held
  await clock.advance('1m')
  await remote.append('other')
  for (const deliver of late) await deliver()
  expect(await bodies(server)).toEqual(['x', 'other'])
})

test('another writer comes first', async () => {
  const { box, network, clock, server, origin } = await openOutbox()
  network.refuse()
  await box.append('mine')
  await clock.advance('5s')
  await origin.append(['a', 'b'])
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['a', 'b', 'mine'])
})

test('an outbox pauses between attempts if a server rejects them and shows no reason', async () => {
  const { box, clock, remote, server } = await openOutbox()
  const append = remote.append.bind(remote)
  let attempts = 0
  // The server says that the tail is another one than the attempt requires, and names just that.
  remote.append = async () => {
    if (++attempts > 1_000) return new Promise(() => {})
    throw new HeadwaterError('seq_num_mismatch', 'not the tail', { seqNum: 0 })
  }
  await box.append('x')
  await clock.advance('1m')
  expect(attempts).toBeLessThan(10)
  expect(box.state).toMatchObject({ kind: 'offline', error: { code: 'seq_num_mismatch' } })
  remote.append = append
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['x'])
})

test('records survive a tab that ends, and another tab sends them', async () => {
  const { box, network, clock, server, storage } = await openOutbox()
  network.refuse()
  await box.append('kept')
  await box.close()
  const other = await openDevice(server, storage)
  const next = startOn(other)
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['kept'])
  expect(next.content.waiting).toEqual([])
})

test('an append of another tab settles there too', async () => {
  const { clock, server, storage } = await openOutbox()
  const other = startOn(await openDevice(server, storage))
  const appended = await other.append('x')
  await clock.settle()
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 0 } })
})

test('a refused batch is set aside with the error, and those behind it wait', async () => {
  const { box, network, clock, server } = await openOutbox()
  const seen: number[] = []
  box.failed$.subscribe((failed) => seen.push(failed.length))
  const refuse = () => network.respond(403, { code: 'permission_denied', when: isPost })
  refuse()
  const first = await box.append('first')
  const second = await box.append('second')
  await clock.advance('1m')
  expect(box.failed).toMatchObject([{ number: first.number, error: { code: 'permission_denied' } }])
  expect(seen).toEqual([0, 1])
  await box.flush()
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual([])
  await box.retry(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['first', 'second'])
  expect(await second.confirmed()).toMatchObject({ start: { seqNum: 1 } })
})

test('a refused batch can be given up', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.respond(403, { code: 'permission_denied', when: isPost })
  const first = await box.append('first')
  await box.append('second')
  await clock.advance('1m')
  network.heal()
  await box.discard(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second'])
  await expect(first.confirmed()).rejects.toMatchObject({ code: 'permission_denied' })
  await expect(box.retry(first.number)).rejects.toMatchObject({ code: 'invalid', field: 'number' })
})

test('batches behind a refused one are sent if the app says so', async () => {
  const { box, network, clock, server } = await openOutbox({ afterRefusal: 'continue' })
  network.respond(422, { code: 'invalid', when: isPost, nth: 1 })
  network.respond(422, { code: 'invalid', when: isPost, nth: 2 })
  const first = await box.append('first')
  await box.append('second')
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second'])
  await box.retry(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second', 'first'])
})

test('an outbox is full at its limits', async () => {
  const { box, network } = await openOutbox({ recordsMax: 3 })
  network.refuse()
  await box.append(['a', 'b'])
  await expect(box.append(['c', 'd'])).rejects.toMatchObject({ code: 'outbox_full', mayHaveEffects: false })
  await box.append('c')
})

test('batches that a server cannot store are rejected at once', async () => {
  const { box } = await openOutbox()
  const invalid = (field: string) => expect.objectContaining({ code: 'invalid', field })
  await expect(box.append({ headers: [['', 'fence']], body: 'x' })).rejects.toEqual(invalid('records'))
  await expect(box.append({ headers: [['headwater-origin', 'x/1']] })).rejects.toEqual(invalid('headers'))
  await expect(box.append({ headers: [['headwater-outbox', 'x']] })).rejects.toEqual(invalid('headers'))
  await expect(box.append('x'.repeat(2 ** 20 - 20))).rejects.toEqual(invalid('records'))
  await expect(box.append([])).rejects.toEqual(invalid('records'))
})

test('many batches are sent together, and a batch is never divided', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.refuse()
  for (let index = 0; index < 9; index++) {
    await box.append(Array.from({ length: 300 }, (_, at) => `${index}.${at}`))
  }
  network.heal()
  await clock.advance('1m')
  const records = await server.stream.read().toArray()
  expect(records).toHaveLength(2_700)
  // Three batches of 300 records fit in one request.
  expect(new Set(records.map(({ timestamp }) => timestamp)).size).toBeLessThanOrEqual(3)
})

test('an idle outbox has no timers and makes no requests', async () => {
  const { box, network, clock } = await openOutbox()
  await box.append('x')
  await clock.advance('1m')
  const requests = network.log.length
  const before = clock.pending
  await clock.advance('1h')
  expect(network.log.length).toBe(requests)
  expect(clock.pending).toBeLessThanOrEqual(before)
})

test('an append in doubt is not sent again to a stream that was deleted and created again', async () => {
  const { box, origin, clock, network, server } = await openOutbox()
  await origin.append(numbered(0, 4))
  const late: (() => Promise<unknown>)[] = []
  network.drop({
    nth: 1,
    when: (request) => {
      if (request.method !== 'POST') return false
      const copy = request.clone()
      late.push(() => server.handle(copy))
      return true
    },
  })
  await box.append('x')
  await clock.settle()
  await origin.delete()
  await origin.append(['a', 'b'])
  await clock.advance('1m')
  expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
  // The first attempt finds its position.
  await origin.append(['c', 'd'])
  for (const deliver of late) await deliver()
  expect(await bodies(server)).toEqual(['a', 'b', 'c', 'd', 'x'])
})

test('a later outbox examines a stream that was created again from its start', async () => {
  const { box, hw, remote, origin, clock, network, server } = await openOutbox()
  await origin.append(numbered(0, 4))
  network.drop({ nth: 1, when: ({ method }) => method === 'POST' })
  await box.append('in doubt')
  await clock.settle()
  await origin.delete()
  await server.hw.basin('basin').stream('stream').readBatch({}, { create: true })
  await clock.advance('1m')
  await box.discard(box.failed[0]!.number)
  network.loseResponse({ nth: 1, when: ({ method }) => method === 'POST' })
  await box.append('x')
  await clock.advance('200ms')
  expect(await bodies(server)).toEqual(['x'])
  await box.close()
  await origin.append(numbered(0, 10))
  const later = startOn({ hw, remote })
  await clock.advance('1m')
  expect(later.state.kind).toBe('idle')
  expect(await bodies(server)).toEqual(['x', ...numbered(0, 10)])
})

/** A device whose copy of a stream of 20 records will begin with the last 5, and that is offline. */
async function openAtEnd() {
  const both = await openBoth()
  await both.origin.append(numbered(0, 20))
  both.network.refuse()
  const synced = syncedStream(both.remote, both.local, {
    from: { tailOffset: 5 },
    random: () => 0.5,
    coordinator: coordinateInThread,
  })
  onTestFinished(() => synced.close())
  return { ...both, synced }
}

test('an append before a copy begins behind it is sent once, and not in doubt', async () => {
  const { synced, network, clock, server } = await openAtEnd()
  const appended = await synced.append('x')
  await clock.advance('1m')
  network.heal()
  await clock.advance('2m')
  expect(await bodies(server)).toEqual([...numbered(0, 20), 'x'])
  expect(synced.outbox.failed).toEqual([])
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 20 } })
})

test('an append that was stored where a copy has no records is found on the server', async () => {
  const { synced, origin, network, clock, server } = await openAtEnd()
  await origin.delete()
  await server.hw.basin('basin').stream('stream').readBatch({}, { create: true })
  const appended = await synced.append('x')
  network.heal()
  network.refuse({ when: ({ method }) => method === 'GET' })
  network.loseResponse({ when: ({ method }) => method === 'POST' })
  await clock.advance('1m')
  await server.stream.append(numbered(0, 20))
  network.heal()
  await clock.advance('2m')
  expect(await bodies(server)).toEqual(['x', ...numbered(0, 20)])
  expect(synced.outbox.failed).toEqual([])
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 0 } })
})

test('an append that may have been stored in records that are trimmed is in doubt', async () => {
  const { synced, origin, network, clock, server } = await openAtEnd()
  await origin.delete()
  await server.hw.basin('basin').stream('stream').readBatch({}, { create: true })
  await synced.append('x')
  network.heal()
  network.refuse({ when: ({ method }) => method === 'GET' })
  network.loseResponse({ when: ({ method }) => method === 'POST' })
  await clock.advance('1m')
  await server.stream.append(numbered(0, 20))
  await server.stream.trim(10)
  // Reads over HTTP have trimmed records for a while.
  await clock.advance('1m')
  network.heal()
  await clock.advance('2m')
  expect(synced.outbox.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
})

test('an append in doubt of an earlier outbox may be anywhere in what a copy does not have', async () => {
  const { remote, hw, local, start, origin, clock, server, storage } = await openBoth()
  server.settings.ignoresProducers = true
  await origin.readBatch({}, { create: true })
  const append = remote.append.bind(remote)
  remote.append = async (records, options) => {
    if (options?.matchSeqNum === 0) await origin.append(numbered(0, 1_000))
    if (options?.matchSeqNum === 1_000) await origin.append(numbered(1_000, 1_200))
    const ack = await append(records, options)
    // The response is lost, and the position of this attempt is in no log.
    throw new HeadwaterError('unavailable', `lost: ${ack.start.seqNum}`)
  }
  const box = startOn({ hw, remote })
  await box.append('x')
  await clock.advance(100)
  await box.close()
  expect((await bodies(server)).at(-1)).toBe('x')
  await origin.append(numbered(1_200, 1_210))
  start({ from: { tailOffset: 5 } })
  await clock.settle()
  const later = startOn({ hw, remote: (await openDevice(server, storage)).remote }, { examined: local })
  await clock.advance('1m')
  expect(later.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
  expect((await bodies(server)).filter((body) => body === 'x')).toEqual(['x'])
})

test('a closed outbox rejects appends and calls that wait', async () => {
  const { box, network } = await openOutbox()
  network.refuse()
  const appended = await box.append('x')
  const waiting = appended.confirmed()
  await box.close()
  await expect(waiting).rejects.toMatchObject({ code: 'closed' })
  await expect(box.append('y')).rejects.toMatchObject({ code: 'closed' })
  expect(box.state).toEqual({ kind: 'closed' })
})

test('an append that is stored while the outbox is closed resolves, and is sent later', async () => {
  const server = await openServer()
  const storage = gated(memory())
  const device = await openDevice(server, storage)
  const box = startOn(device)
  await box.append('first')
  await server.clock.settle()
  storage.holding = true
  const appending = box.append('second')
  await server.clock.settle()
  const closing = box.close()
  storage.holding = false
  storage.release()
  const { number } = await appending
  await closing
  const later = startOn(device)
  await later.loaded
  await server.clock.advance('1m')
  const stored = await server.stream.read().toArray()
  expect(stored.map(({ body, headers }) => [body, headers[0]![1]])).toEqual([
    ['first', expect.anything()],
    ['second', `${later.device}/${number}`],
  ])
})

test('flush waits for records that were stored before the outbox was opened', async () => {
  const { box, hw, remote, network, clock, server } = await openOutbox()
  network.refuse()
  await box.append('x')
  await box.close()
  network.heal()
  const afterFlush = startOn({ hw, remote })
    .flush()
    .then(() => bodies(server))
  await clock.advance('1m')
  expect(await afterFlush).toEqual(['x'])
})

test('the log is trimmed when its records are not needed any more', async () => {
  const { box, hw, clock } = await openOutbox()
  for (let index = 0; index < 100; index++) {
    await box.append(`r${index}`)
    await clock.settle()
  }
  const log = await hw.basin('basin').stream('.outbox/stream').read().toArray()
  expect(log.length).toBeLessThan(100)
})

test('two senders at once store every record once, in order', async () => {
  const { hw, remote, server, storage, clock } = await openBoth()
  await server.stream.readBatch({}, { create: true })
  const log = () => hw.basin('basin').stream('.outbox/stream')
  const second = await openDevice(server, storage)
  const boxes = [
    new Outbox(log(), remote, { random: () => 0.1 }),
    new Outbox(second.hw.basin('basin').stream('.outbox/stream'), second.remote, { random: () => 0.9 }),
  ]
  const ending = new AbortController()
  const running = boxes.map((box) => box.run(ending.signal))
  for (let index = 0; index < 40; index++) {
    await boxes[index % 2]!.append(`r${index}`)
    if (index % 3 === 0) await clock.advance(5)
  }
  await clock.advance('1m')
  ending.abort()
  await Promise.all(running)
  expect(await bodies(server)).toEqual(Array.from({ length: 40 }, (_, index) => `r${index}`))
  for (const box of boxes) await box.close()
})

function isPost({ method }: Request): boolean {
  return method === 'POST'
}

test('rejects options that are not valid', async () => {
  const { hw, remote } = await openBoth()
  const log = hw.basin('basin').stream('log')
  expect(() => outbox(log, remote, { recordsMax: 0 })).toThrow(HeadwaterError)
  expect(() => outbox(log, remote, { bytesMax: 5 })).toThrow('`bytesMax` must be at least 1048576, not 5')
  expect(() => outbox(log, log)).toThrow('same stream')
})
