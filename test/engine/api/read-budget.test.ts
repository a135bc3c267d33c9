import { expect, it, onTestFinished } from 'vitest'
import { open } from '../../../src/index.ts'
import { MIB } from '../../../src/model/limits.ts'
import { testClock, testStorage } from '../../support/index.ts'

/** An engine with 16 MiB for reads, and a stream of batches of 1 MiB. */
async function openWithBatches(batches: number) {
  const clock = testClock()
  const hw = await open({ storage: testStorage(), clock, limits: { readBufferBytes: 16 * MIB } })
  onTestFinished(() => hw.close())
  const stream = hw.basin('basin').stream('stream')
  const batch = Array.from({ length: 15 }, () => 'x'.repeat(65_536))
  for (let count = 0; count < batches; count++) await stream.append(batch)
  return { hw, clock, stream, records: batches * batch.length }
}

it('ends the sessions that stopped reading when others need their memory', async () => {
  const { hw, clock, stream, records } = await openWithBatches(8)
  const timers = clock.pending
  // Bounded, so that the remaining sessions end too. The number of batches depends on the storage.
  const stalled = Array.from({ length: 30 }, () =>
    stream.readSession({ seqNum: 0, count: records }).batches(),
  )
  const firsts = Promise.allSettled(stalled.map((session) => session.next()))
  let read = 0
  const reader = (async () => {
    for await (const batch of stream.readSession({ seqNum: 0, count: records }).batches()) read += batch.count
  })()
  while (read < records) await clock.advance('1s')
  await reader
  expect(read).toBe(records)
  expect(hw.stats().readBufferBytes).toBeLessThanOrEqual(16 * MIB)

  const outcomes = await firsts
  expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
  const seconds = await Promise.allSettled(
    stalled.slice(0, 10).map(async (session) => {
      // Batches that were read from the storage before are delivered; then the session reports its end.
      for (let batch = 0; batch < 8; batch++) await session.next()
    }),
  )
  const reasons = seconds.map((result) => (result.status === 'rejected' ? result.reason : undefined))
  expect(reasons).toContainEqual(
    expect.objectContaining({
      code: 'rate_limited',
      retryable: true,
      message: expect.stringContaining('limits.readBufferBytes'),
    }),
  )
  for (const session of stalled) await session.return()
  expect(hw.stats()).toMatchObject({ readBufferBytes: 0, openSessions: 0, openReads: 0 })
  expect(clock.pending).toBe(timers)
})

it('returns the memory of reads that end, fail or wait at the tail', async () => {
  const { hw, clock, stream, records } = await openWithBatches(8)
  await stream.read({ seqNum: 0 })
  expect(hw.stats().readBufferBytes).toBe(0)
  const abandoned = stream.readSession({ seqNum: 0 }).batches()
  await abandoned.next()
  expect(hw.stats().readBufferBytes).toBeGreaterThan(MIB)
  await abandoned.return()
  expect(hw.stats().readBufferBytes).toBe(0)

  const follower = stream.readSession({ seqNum: 0 }).batches()
  for (let read = 0; read < records; ) read += (await follower.next()).value!.count
  const waiting = follower.next()
  await clock.settle()
  expect(hw.stats()).toMatchObject({ readBufferBytes: 0, waitingReads: 1 })
  await stream.append('live')
  expect((await waiting).value!.count).toBe(1)
  expect(hw.stats().readBufferBytes).toBeGreaterThan(0)
  await follower.return()
  expect(hw.stats().readBufferBytes).toBe(0)
})

it.each([0, 1, 16 * MIB - 1])('rejects a budget of %s bytes', async (readBufferBytes) => {
  await expect(open({ storage: testStorage(), limits: { readBufferBytes } })).rejects.toThrow(
    /limits\.readBufferBytes must be at least 16777216/,
  )
})
