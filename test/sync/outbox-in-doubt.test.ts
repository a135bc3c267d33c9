import { expect, onTestFinished, test } from 'vitest'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { syncedStream } from '../../adapters/sync/synced.ts'
import { HeadwaterError } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { attemptRecord } from '../../src/sync/outbox-attempts.ts'
import { batchRecords, emptyOutbox, progressRecord, withLogRecords } from '../../src/sync/outbox-log.ts'
import { openBoth, openDevice, until } from './mirrored.ts'
import { type AppendCall, bodies, isPost, isRead, numbered, openOutbox, startOn } from './outboxes.ts'

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
  network.refuse({ when: isRead })
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
  network.refuse({ when: isRead })
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

test('an append in doubt of an earlier outbox is found where a copy does not have it', async () => {
  const { remote, hw, local, start, origin, clock, server, storage } = await openBoth()
  server.settings.ignoresProducers = true
  await origin.readBatch({}, { create: true })
  const append = remote.append.bind(remote)
  remote.append = async (records, options) => {
    if (options?.matchSeqNum === 0) await origin.append(numbered(0, 1_000))
    if (options?.matchSeqNum === 1_000) await origin.append(numbered(1_000, 1_200))
    const ack = await append(records, options)
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
  expect(later.failed).toEqual([])
  expect(later.isFlushed).toBe(true)
  expect((await bodies(server)).filter((body) => body === 'x')).toEqual(['x'])
})

test('an append of an earlier attempt may be anywhere in what a copy does not have', async () => {
  const { remote, hw, local, start, origin, clock, server } = await openBoth()
  server.settings.ignoresProducers = true
  const log = hw.basin('basin').stream('.outbox/stream')
  const progress = {
    device: 'device',
    producer: 'producer',
    attemptAt: -1,
    position: 0,
    inDoubt: false,
    confirmed: [],
  }
  const first = { epoch: 0, seq: 1, numbers: [1], position: undefined, isSettled: false, after: -1 }
  await log.append([
    progressRecord(progress),
    ...batchRecords([{ timestamp: undefined, headers: [], body: utf8('x') }], 'nonce'),
    attemptRecord(first),
    attemptRecord({ ...first, epoch: 1, seq: 0, position: 100, after: 2 }),
  ])
  for (let from = 0; from < 2_000; from += 1_000) await origin.append(numbered(from, from + 1_000))
  await origin.append({ body: 'x', headers: [['headwater-origin', 'device/1/nonce']] })
  await origin.append(numbered(2_000, 2_010))
  start({ from: { tailOffset: 5 } })
  await clock.settle()
  const box = startOn({ hw, remote }, { examined: local })
  await clock.advance('1m')
  expect(box.failed).toMatchObject([{ number: 1, error: { code: 'outcome_unknown' } }])
  expect((await bodies(server)).filter((body) => body === 'x')).toEqual(['x'])
})

test('records that were examined are examined again for an attempt of another sender', async () => {
  const { box, hw, origin, server, clock } = await openOutbox()
  server.settings.ignoresProducers = true
  await box.append('0')
  await clock.settle()
  // A record that this tab learns of later: its reading of the log is behind.
  await origin.append({ body: 'x', headers: [['headwater-origin', `${box.device}/100/nonce`]] })
  await box.append('1')
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['0', 'x', '1'])
  const log = hw.basin('basin').stream('.outbox/stream')
  const records = await log.read({}, { as: 'bytes' }).toArray()
  const { attempt, next } = withLogRecords(emptyOutbox(), records)
  await log.append(numbered(next, 100))
  const { epoch, at } = attempt!
  await log.append([
    ...batchRecords([{ timestamp: undefined, headers: [], body: utf8('x') }], 'nonce'),
    attemptRecord({ epoch: epoch + 1, seq: 0, numbers: [100], position: 1, isSettled: true, after: at }),
  ])
  await clock.advance('1m')
  expect(box.isFlushed).toBe(true)
  expect(await bodies(server)).toEqual(['0', 'x', '1'])
})

test('an append is not confirmed by a late attempt that did not contain it', async () => {
  const { box, remote, server, clock } = await openOutbox({ afterRefusal: 'continue' })
  const append = remote.append.bind(remote)
  const refused = new HeadwaterError('permission_denied', 'the token was revoked')
  let deliver: (() => Promise<unknown>) | undefined
  remote.append = async (...[records, options]: AppendCall) => {
    const epoch = options?.producer?.epoch
    // Epoch 0 has both appends, epoch 1 the first one, and epoch 2 the second one.
    if (epoch !== 2 || deliver !== undefined) throw refused
    deliver = () => append(records, options)
    throw new HeadwaterError('unavailable', 'the request was delayed')
  }
  const appended = await Promise.all(['0', '1'].map((body) => box.append(body)))
  await clock.advance('1m')
  expect(box.failed).toHaveLength(2)
  await deliver!()
  remote.append = append
  await Promise.all(appended.map(({ number }) => box.retry(number)))
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['1', '0'])
  expect(await appended[0]!.confirmed()).toMatchObject({ start: { seqNum: 1 } })
})

/** A device whose synced stream is live, with a copy of 20 records. */
async function openCopied() {
  const both = await openBoth()
  await both.origin.append(numbered(0, 20))
  const synced = syncedStream(both.remote, both.local, {
    random: () => 0.5,
    coordinator: coordinateInThread,
    wakeUps: both.listen,
  })
  onTestFinished(() => synced.close())
  await until(synced.mirror, 'live', both.clock)
  return { ...both, synced }
}

test('an append in doubt is not sent to a new stream whose copy begins behind it', async () => {
  const { synced, origin, network, clock, server } = await openCopied()
  network.loseResponse({ when: isPost })
  await synced.append('x')
  await clock.settle()
  network.refuse()
  await clock.advance('1s')
  await origin.delete()
  await server.stream.append(numbered(0, 40))
  network.heal()
  await until(synced.mirror, 'stopped', clock)
  await synced.mirror.restart({ from: { tailOffset: 5 } })
  await clock.advance('2m')
  expect(await bodies(server)).toEqual(numbered(0, 40))
  expect(synced.outbox.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
})

test('an append in doubt is found after a restart of a mirror that was offline', async () => {
  const { synced, network, loseNetwork, clock, server } = await openCopied()
  network.loseResponse({ when: isPost })
  const appended = await synced.append('x')
  await clock.settle()
  network.refuse()
  loseNetwork()
  await until(synced.mirror, 'offline', clock)
  network.heal()
  await synced.mirror.restart()
  await clock.advance('2m')
  expect(synced.outbox.failed).toEqual([])
  expect(await bodies(server)).toEqual([...numbered(0, 20), 'x'])
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 20 } })
})

test('an append in flight is found after a restart of a mirror that is live', async () => {
  const { synced, network, clock, server } = await openCopied()
  network.delay('2s', { when: isPost })
  const appended = await synced.append('x')
  await clock.advance('1s')
  await synced.mirror.restart()
  await clock.advance('2m')
  expect(synced.outbox.failed).toEqual([])
  expect(await bodies(server)).toEqual([...numbered(0, 20), 'x'])
  expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 20 } })
})
