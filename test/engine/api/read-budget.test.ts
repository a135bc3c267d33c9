import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import { MIB } from '../../../src/model/limits.ts'
import { testClock, testStorage, wrapped } from '../../support/index.ts'
import { shareOfRuns } from '../../support/property-runs.ts'

/** An engine with 16 MiB for reads, and a stream of batches of 1 MiB. */
async function openWithBatches(batches: number, storage = testStorage()) {
  const clock = testClock()
  const hw = await open({ storage, clock, limits: { readBufferBytes: 16 * MIB } })
  onTestFinished(() => hw.close())
  const stream = hw.basin('basin').stream('stream')
  const batch = Array.from({ length: 15 }, () => 'x'.repeat(65_536))
  for (let count = 0; count < batches; count++) await stream.append(batch)
  return { hw, clock, stream, records: batches * batch.length }
}

it('takes the memory of loops that pause for those that do not, and ends none', {
  tags: ['slow'],
}, async () => {
  const { hw, clock, stream, records } = await openWithBatches(8)
  const timers = clock.pending
  const paused = Array.from({ length: 30 }, () => stream.read({ seqNum: 0, count: records }).batches())
  const counts = paused.map(() => 0)
  const readBatch = async (index: number) => {
    const { value } = await paused[index]!.next()
    counts[index]! += value?.count ?? 0
  }
  const firsts = Promise.all(paused.map((_, index) => readBatch(index)))
  let read = 0
  const reader = (async () => {
    for await (const batch of stream.read({ seqNum: 0, count: records }).batches()) read += batch.count
  })()
  while (read < records) await clock.advance('1s')
  await Promise.all([reader, firsts])
  expect(hw.stats().readBufferBytes).toBeLessThanOrEqual(16 * MIB)

  // They continue one after the other, while the others still pause.
  for (const [index] of paused.entries()) {
    const rest = (async () => {
      while (counts[index]! < records) await readBatch(index)
    })()
    while (counts[index]! < records) await clock.advance('1s')
    await rest
  }
  expect(counts).toEqual(paused.map(() => records))
  for (const session of paused) await session.return()
  expect(hw.stats()).toMatchObject({ readBufferBytes: 0, openSessions: 0, openReads: 0 })
  expect(clock.pending).toBe(timers)
})

it('drops what a loop that pauses has not delivered, and reads it again', async () => {
  const asked: number[] = []
  const watched = wrapped(memory(), {}, (session) => ({
    read(logId, range) {
      if ('seqNum' in range.from) asked.push(range.from.seqNum)
      return session.read(logId, range)
    },
  }))
  const { clock, stream, records } = await openWithBatches(12, watched)
  const paused = stream.read({ seqNum: 0, count: records }).batches()
  let lastSeqNum = -1
  // From the second request on, the next batch is read ahead.
  for (let batch = 0; batch < 3; batch++) lastSeqNum = (await paused.next()).value!.lastSeqNum
  const others = Array.from({ length: 10 }, () => stream.read({ seqNum: 0, count: records }).batches())
  let isRead = false
  const reading = Promise.all(others.map((session) => session.next())).finally(() => {
    isRead = true
  })
  while (!isRead) await clock.advance('1s')
  await reading
  asked.length = 0
  for (const session of others) await session.return()

  expect((await paused.next()).value!.records[0]!.seqNum).toBe(lastSeqNum + 1)
  expect(asked).toContain(lastSeqNum + 1)
  await paused.return()
})

/** Reads all records in a loop that pauses after each batch or record. Returns their sequence numbers. */
async function readSlowly(
  { hw, clock, stream, records }: Awaited<ReturnType<typeof openWithBatches>>,
  pauseMs: number,
  by: 'records' | 'batches',
): Promise<number[]> {
  const seqNums: number[] = []
  const session = stream.read({ seqNum: 0, count: records }, { as: 'bytes' })
  const pause = async () => {
    expect(hw.stats().readBufferBytes).toBeLessThanOrEqual(16 * MIB)
    await new Promise<void>((resolve) => clock.schedule(pauseMs, resolve))
  }
  if (by === 'records') {
    for await (const { seqNum } of session) {
      seqNums.push(seqNum)
      await pause()
    }
    return seqNums
  }
  for await (const batch of session.batches()) {
    seqNums.push(...batch.records.map(({ seqNum }) => seqNum))
    await pause()
  }
  return seqNums
}

const SLOW_LOOPS = 40

it('completes slow loops that together need many times the budget', { tags: ['slow'] }, async () => {
  const opened = await openWithBatches(6)
  const { clock, records } = opened
  let isOver = false
  const loops = Promise.all(
    Array.from({ length: SLOW_LOOPS }, () => readSlowly(opened, 5_000, 'batches')),
  ).finally(() => {
    isOver = true
  })
  while (!isOver) await clock.advance('1s')
  const all = Array.from({ length: records }, (_, seqNum) => seqNum)
  for (const seqNums of await loops) expect(seqNums).toEqual(all)
})

it('delivers every record once to loops of any pace', { tags: ['slow'] }, async () => {
  const opened = await openWithBatches(6)
  const { hw, clock, records } = opened
  const all = Array.from({ length: records }, (_, seqNum) => seqNum)
  const pace = fc.record({
    pauseMs: fc.constantFrom(0, 1, 100, 999, 1_000, 1_001, 2_500, 40_000),
    by: fc.constantFrom('records', 'batches'),
  })
  const paces = fc.array(pace, { minLength: 2, maxLength: 25 })
  await fc.assert(
    fc.asyncProperty(paces, async (paces) => {
      let isOver = false
      const loops = Promise.all(paces.map(({ pauseMs, by }) => readSlowly(opened, pauseMs, by))).finally(
        () => {
          isOver = true
        },
      )
      while (!isOver) await clock.advance('1s')
      for (const seqNums of await loops) expect(seqNums).toEqual(all)
      expect(hw.stats()).toMatchObject({ readBufferBytes: 0, openReads: 0 })
    }),
    // Each reads 6 MiB up to 25 times.
    shareOfRuns(1 / 8),
  )
})

it('admits small reads while large ones use up their part', {
  tags: ['slow'],
}, async () => {
  const { hw, clock, stream } = await openWithBatches(8)
  const small = hw.basin('basin').stream('small')
  await small.append(['a', 'b'])
  const paused = Array.from({ length: 20 }, () => stream.read({ seqNum: 0, count: 100 }).batches())
  const firsts = paused.map((session) => session.next())
  // Some wait for memory.
  await clock.settle()
  expect((await small.readBatch({ seqNum: 0, count: 1 })).count).toBe(1)
  expect(await small.read({ seqNum: 0, count: 2 }).toArray()).toHaveLength(2)
  const reading = Promise.all(firsts)
  await clock.advance('30s')
  await reading
  for (const session of paused) await session.return()
  expect(hw.stats().readBufferBytes).toBe(0)
})

it('returns the memory of reads that end, fail or wait at the tail', async () => {
  const { hw, clock, stream, records } = await openWithBatches(8)
  await stream.read({ seqNum: 0 })
  expect(hw.stats().readBufferBytes).toBe(0)
  const abandoned = stream.follow({ seqNum: 0 }).batches()
  await abandoned.next()
  expect(hw.stats().readBufferBytes).toBeGreaterThan(MIB)
  await abandoned.return()
  expect(hw.stats().readBufferBytes).toBe(0)

  const follower = stream.follow({ seqNum: 0 }).batches()
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
