import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { Outbox, outbox } from '../../adapters/sync/outbox.ts'
import { HeadwaterError, type Stream } from '../../src/index.ts'
import { splitting } from '../storage/wrapped-storage.ts'
import { gated } from '../support/index.ts'
import { openBoth, openDevice, openServer } from './mirrored.ts'
import { bodies, isPost, openOutbox, startOn } from './outboxes.ts'

/** The records that are not known to be on the server. */
const recordsOf = ({ log }: Outbox) => [...log.state.entries.values()].flatMap(({ records }) => records)

test('records arrive in the order of the calls, whatever signals these have', async () => {
  const { box, clock, server } = await openOutbox()
  const { signal } = new AbortController()
  await Promise.all([box.append('a', { signal }), box.append('b'), box.append('c', { signal })])
  await clock.settle()
  expect(await bodies(server)).toEqual(['a', 'b', 'c'])
})

test('each record has the header that identifies it, after its own', async () => {
  const { box, clock, server } = await openOutbox()
  const { number } = await box.append({ body: 'x', headers: [['kind', 'note']] })
  await clock.settle()
  const [record] = await server.stream.read().toArray()
  expect(record!.headers).toEqual([
    ['kind', 'note'],
    ['headwater-origin', expect.stringMatching(`^${box.log.device}/${number}/[a-z0-9]{12}$`)],
  ])
})

test('a record keeps the timestamp that the app gave', { tags: ['slow'] }, async () => {
  const { box, network, clock, server } = await openOutbox()
  network.refuse()
  await box.append([{ body: 'old', timestamp: 1_000 }, { body: 'older', timestamp: new Date(500) }, 'new'])
  const now = clock.now()
  expect(recordsOf(box).map(({ timestamp }) => timestamp)).toEqual([1_000, 500, now])
  await clock.advance('1h')
  network.heal()
  await clock.advance('1m')
  const timestamps = (await server.stream.read().toArray()).map(({ timestamp }) => timestamp)
  // The server keeps timestamps in order.
  expect(timestamps.slice(0, 2)).toEqual([1_000, 1_000])
  expect(timestamps[2]).toBeGreaterThanOrEqual(now + 3_600_000)
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

test('many batches are sent together, and a batch is never divided', { tags: ['slow'] }, async () => {
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

test('a closed outbox rejects appends and calls that wait', async () => {
  const { box, network } = await openOutbox()
  network.refuse()
  const appended = await box.append('x')
  const waiting = appended.confirmed()
  await box.close()
  await expect(waiting).rejects.toMatchObject({ code: 'closed' })
  await expect(box.append('y')).rejects.toMatchObject({ code: 'closed' })
  await expect(box.retry(appended.number)).rejects.toMatchObject({ code: 'closed' })
  expect(box.state).toEqual({ kind: 'closed' })
})

test('an outcome that was known before the outbox was closed is still reported', async () => {
  const { box, clock, network } = await openOutbox({ afterRefusal: 'continue' })
  const [first, second] = [await box.append('first'), await box.append('second')]
  await clock.advance('1m')
  network.respond(422, { code: 'invalid', when: isPost })
  const discarded = await box.append('discarded')
  await clock.advance('1m')
  await box.discard(discarded.number)
  network.heal()
  await box.close()
  expect(await first.confirmed()).toMatchObject({ start: { seqNum: 0 } })
  expect(await second.confirmed()).toMatchObject({ start: { seqNum: 1 } })
  await expect(discarded.confirmed()).rejects.toMatchObject({ code: 'invalid' })
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
  const { number, confirmed } = await appending
  await closing
  await expect(confirmed()).rejects.toMatchObject({ code: 'closed' })
  const later = startOn(device)
  await later.log.loaded()
  await server.clock.advance('1m')
  const stored = await server.stream.read().toArray()
  expect(stored.map(({ body, headers }) => [body, headers[0]![1]])).toEqual([
    ['first', expect.anything()],
    ['second', expect.stringContaining(`${later.log.device}/${number}/`)],
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

test('the records of a batch are known when all of it was read', async () => {
  const server = await openServer()
  server.network.refuse()
  // The storage returns 1 MiB at once, which ends within the batch.
  const device = await openDevice(server, splitting())
  const body = 'x'.repeat(300_000)
  const first = startOn(device)
  await first.append([body, body])
  await first.append([body, body, body])
  const box = startOn(device)
  const before: number[] = []
  box.log.subscribe(() => {
    before.push(recordsOf(box).length)
  })
  await server.clock.settle()
  expect(recordsOf(box)).toHaveLength(5)
  expect(new Set(before)).toEqual(new Set([2, 5]))
})

test('the log is trimmed when its records are no longer needed', { tags: ['slow'] }, async () => {
  const { box, hw, clock } = await openOutbox()
  for (let index = 0; index < 100; index++) {
    await box.append(`r${index}`)
    await clock.settle()
  }
  const log = await hw.basin('basin').stream('.outbox/stream').read().toArray()
  expect(log.length).toBeLessThan(100)
})

test('two senders at once store every record once, in order', { tags: ['slow'] }, async () => {
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

test('rejects options that are not valid', async () => {
  const { hw, remote } = await openBoth()
  const log = hw.basin('basin').stream('log')
  expect(() => outbox(log, remote, { recordsMax: 0 })).toThrow(HeadwaterError)
  expect(() => outbox(log, remote, { bytesMax: 5 })).toThrow('`bytesMax` must be at least 1048576, not 5')
  expect(() => outbox(log, log)).toThrow('same stream')
  expect(() => outbox(log, undefined!)).toThrow(expect.objectContaining({ code: 'invalid', field: 'remote' }))
  const basin = hw.basin('basin') as unknown as Stream
  expect(() => outbox(basin, remote)).toThrow(expect.objectContaining({ code: 'invalid', field: 'local' }))
})
