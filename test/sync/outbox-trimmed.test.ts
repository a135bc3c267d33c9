import { expect, onTestFinished, test } from 'vitest'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { syncedStream } from '../../adapters/sync/synced.ts'
import { type AppendAck, HeadwaterError } from '../../src/index.ts'
import { openBoth, until } from './mirrored.ts'
import { type AppendCall, isPost, numbered } from './outboxes.ts'

/** A synced stream that is live, whose appends the server acknowledges, then does `afterwards`. */
async function openLive(afterwards: (ack: AppendAck) => Promise<void>) {
  const both = await openBoth({ trimGraceMs: 0 })
  await both.origin.append(numbered(0, 5))
  const { remote, local, clock } = both
  const append = remote.append.bind(remote)
  remote.append = async (...call: AppendCall) => {
    const ack = await append(...call)
    await afterwards(ack)
    return ack
  }
  const synced = syncedStream(remote, local, {
    random: () => 0.5,
    coordinator: coordinateInThread,
  })
  onTestFinished(() => synced.close())
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

test.each([['those of its records that were not trimmed', [['0', '1', '2']], [5]]] as const)(
  'an append in doubt is confirmed by %s',
  async (_, batches, starts) => {
    const device = await openLive(async ({ end }) => {
      if (end.seqNum !== 8) return
      await device.origin.trim(7)
      await copied(device)
      throw new HeadwaterError('unavailable', 'the response was lost')
    })
    const { synced, clock, server, network } = device
    server.settings.ignoresProducers = true
    let failures = 0
    const watching = synced.outbox.failed$.subscribe((failed) => {
      failures += failed.length
    })
    onTestFinished(() => watching.unsubscribe())
    network.refuse({ nth: 1, when: isPost })
    const appended = await Promise.all(batches.map((batch) => synced.append(batch)))
    await clock.advance('1m')
    expect(synced.outbox.isFlushed).toBe(true)
    const acks = await Promise.all(appended.map((each) => each.confirmed()))
    expect(acks.map(({ start }) => start.seqNum)).toEqual(starts)
    expect(acks.at(-1)).toMatchObject({ end: { seqNum: 8 } })
    expect(failures).toBe(0)
  },
)
