// @module-tag slow

import { expect, test, vi } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { virtualClock } from '../../../../adapters/testing/index.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { changedDisk } from '../engine-disk.ts'
import { openFiles } from '../open-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

const JOURNAL = 'journal-0000000001'
const LARGE = 1e9
const APPENDS = 40
/** The number of groups between two records of the synced end. */
const GROUPS = 16

/** A journal with many groups, and where each of them ends. */
async function journal(end: 'closed' | 'crashed') {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, LARGE)
  const writer = await LogWriter.create(session, 'a')
  const ends: number[] = []
  for (let i = 0; i < APPENDS; i++) {
    await writer.append()
    ends.push(disk.contentOf(JOURNAL).length)
  }
  const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
  await session.close()
  return { disk: end === 'closed' ? disk : crashed, ends }
}

/** A storage on a virtual clock. */
async function timed() {
  const disk = new SimulatedDisk(new Prng(1))
  const clock = virtualClock()
  const options = { durability: 'power-loss', rollBytes: LARGE } as const
  const session = await openFiles(disk, options, async () => {}, { clock })
  return { disk, session, clock }
}

function truncatedTo(disk: SimulatedDisk, length: number): SimulatedDisk {
  return changedDisk(disk, (_, content) => content.subarray(0, length))
}

async function expectReported(disk: SimulatedDisk, at: number): Promise<void> {
  const problem = expect.stringMatching(/^groups are missing: everything up to \d+ was synced$/)
  await expect(openSimulated(disk, LARGE)).rejects.toMatchObject({
    kind: 'corrupt',
    message: expect.stringMatching(new RegExp(`^${JOURNAL} is damaged at offset ${at}: groups are missing`)),
  })
  const report = await verifyFiles(disk, { ofEngine: false })
  expect(report.problems).toMatchObject([{ file: JOURNAL, offset: at, problem }])
}

test('after a clean close, a truncation of the last journal at any place is reported', {
  tags: ['slow'],
}, async () => {
  const { disk, ends } = await journal('closed')
  for (const [i, end] of ends.slice(0, -1).entries()) {
    if (i % 6 > 1) continue
    await expectReported(truncatedTo(disk, end), end)
    await expectReported(truncatedTo(disk, end + 20), end)
    if (i > 0) await expectReported(truncatedTo(disk, end - 3), ends[i - 1]!)
  }
  // The last append itself.
  await expectReported(truncatedTo(disk, ends.at(-1)! - 1), ends.at(-2)!)
  // The bytes after it are not needed.
  const session = await openSimulated(truncatedTo(disk, ends.at(-1)! + 1), LARGE)
  expect((await session.head('a'))?.tail.seqNum).toBe(APPENDS)
  await session.close()
})

test('after a crash, a truncation by more groups than a recorded end may lag is reported', async () => {
  const { disk, ends } = await journal('crashed')
  for (const end of ends.slice(0, -GROUPS - 1)) await expectReported(truncatedTo(disk, end), end)
  const undetected = ends.filter((end) => end > ends.at(-GROUPS - 2)!)
  for (const end of undetected.slice(0, -1)) {
    const truncated = truncatedTo(disk, end)
    const isOpened = await openSimulated(truncated, LARGE).then(
      (session) => session.close().then(() => true),
      () => false,
    )
    const { problems } = await verifyFiles(truncated, { ofEngine: false })
    expect(problems.length === 0).toBe(isOpened)
  }
})

test('after a crash that follows 100 ms without appends, a truncation at any place is reported', async () => {
  const { disk, session, clock } = await timed()
  const writer = await LogWriter.create(session, 'a')
  const ends: number[] = []
  for (let i = 0; i < 5; i++) {
    await writer.append()
    ends.push(disk.contentOf(JOURNAL).length)
    await clock.advance(60)
  }
  const busy = disk.crashedAfter(disk.length, 'everything', new Prng(1))
  await (await openSimulated(truncatedTo(busy, ends[0]!), LARGE)).close()
  const before = disk.length
  await clock.advance(100)
  await vi.waitFor(() => expect(disk.length).toBe(before + 2))
  const crashed = disk.crashedAfter(disk.length, 'everything', new Prng(1))
  for (const [i, end] of ends.entries()) {
    if (i > 0) await expectReported(truncatedTo(crashed, end - 1), ends[i - 1]!)
    if (end !== ends.at(-1)) await expectReported(truncatedTo(crashed, end), end)
  }
  // Once is enough.
  await clock.advance(1000)
  expect(disk.length).toBe(before + 2)
  expect(clock.pending).toBe(0)
  await session.close()
})

test.each([
  ['busy', 0],
  ['idle at times', 0.2],
])('after a crash of a storage that is %s, nothing is reported', async (_, idleShare) => {
  const { disk, session, clock } = await timed()
  const idle = new Prng(3)
  const writer = await LogWriter.create(session, 'a')
  const tails: number[] = []
  for (let i = 0; i < APPENDS; i++) {
    await writer.append()
    tails[disk.length] = i + 1
    if (idle.chance(idleShare)) await clock.advance(100)
  }
  await session.close()
  const prng = new Prng(2)
  for (let count = 0; count <= disk.length; count += 10) {
    const crashed = disk.crashedAfter(count, (['everything', 'some', 'reordered'] as const)[count % 3]!, prng)
    const { problems } = await verifyFiles(crashed, { ofEngine: false })
    expect(problems).toEqual([])
    const reopened = await openSimulated(crashed, LARGE)
    const acknowledged = tails.slice(0, count + 1).findLast((tail) => tail !== undefined) ?? 0
    expect((await reopened.read('a', WHOLE_LOG)).length).toBeGreaterThanOrEqual(acknowledged)
    await reopened.close()
  }
})
