import { expect, onTestFinished, test } from 'vitest'
import { type AppendAck, HeadwaterError } from '../../src/index.ts'
import { openBoth, until } from './mirrored.ts'
import { type AppendCall, isPost, numbered } from './outboxes.ts'

/** A synced stream that is live, whose appends the server acknowledges, then does `afterwards`. */
async function openLive(afterwards: (ack: AppendAck) => Promise<void>) {
  const both = await openBoth({ trimGraceMs: 0 })
  await both.origin.append(numbered(0, 5))
  const { remote, startSynced, clock } = both
  const append = remote.append.bind(remote)
  remote.append = async (...call: AppendCall) => {
    const ack = await append(...call)
    await afterwards(ack)
    return ack
  }
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  return { ...both, synced }
}

/** Waits until a synced stream has copied what the server has. */
async function copied(both: Awaited<ReturnType<typeof openBoth>>): Promise<void> {
  const { seqNum } = await both.origin.checkTail()
  await both.local.readBatch({ seqNum: seqNum - 1, waitMs: 60_000 })
}

test.each([
  ['the first records of a batch', 1],
  ['the first batches', 2],
])('an append is confirmed if %s were trimmed before it was acknowledged', async (_, count) => {
  const device = await openLive(async ({ end }) => {
    if (end.seqNum !== 8) return
    await device.origin.trim(7)
    await copied(device)
  })
  const { synced, clock, server } = device
  const batches = count === 1 ? [['0', '1', '2']] : ['0', '1', '2']
  const appended = batches.map((batch) => synced.append(batch))
  await clock.advance('1m')
  expect(synced.outbox.isFlushed).toBe(true)
  const acks = await Promise.all(appended.map(async (each) => (await each).confirmed()))
  expect(acks.map(({ start }) => start.seqNum)).toEqual(count === 1 ? [5] : [5, 6, 7])
  await synced.append('next')
  await clock.advance('1m')
  const stored = await server.stream.read({}, { commands: false }).toArray()
  expect(stored.map(({ body }) => body)).toEqual(['2', 'next'])
})

test('an append in doubt is confirmed by those of its records that were not trimmed', async () => {
  const device = await openLive(async ({ end }) => {
    if (end.seqNum !== 8) return
    await device.origin.trim(7)
    await copied(device)
    throw new HeadwaterError('unavailable', 'the response was lost')
  })
  const { synced, clock, server, network } = device
  server.settings.ignoresProducers = true
  const failures: unknown[] = []
  const watching = synced.outbox.failed$.subscribe((failed) => failures.push(...failed))
  onTestFinished(() => watching.unsubscribe())
  network.refuse({ nth: 1, when: isPost })
  const { confirmed } = await synced.append(['0', '1', '2'])
  await clock.advance('1m')
  expect(synced.outbox.isFlushed).toBe(true)
  expect(await confirmed()).toMatchObject({ start: { seqNum: 5 }, end: { seqNum: 8 } })
  expect(failures).toEqual([])
})

test('what was never sent is not in doubt if the batch before was found, then trimmed', async () => {
  let isLost = false
  const device = await openLive(async () => {
    if (!isLost) return
    isLost = false
    await copied(device)
    device.network.refuse()
    throw new HeadwaterError('unavailable', 'the response was lost')
  })
  const { synced, clock, origin, network } = device
  await synced.append('first')
  await clock.advance('1m')
  isLost = true
  const found = await synced.append('found')
  await clock.advance('1m')
  await found.confirmed()
  await origin.append(['other', 'another'])
  await origin.trim((await origin.checkTail()).seqNum - 1)
  network.heal()
  await clock.advance('1m')
  await synced.mirror.restart()
  const late = await synced.append('late')
  await clock.advance('1m')
  expect(synced.outbox.failed).toEqual([])
  expect(await late.confirmed()).toMatchObject({ start: { seqNum: 10 } })
  const stored = await origin.read({}, { commands: false }).toArray()
  expect(stored.map(({ body }) => body)).toEqual(['another', 'late'])
})
