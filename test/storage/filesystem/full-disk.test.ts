import { describe, expect, test, vi } from 'vitest'
import { checkRead, NOW, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { RESERVE_NAME } from '../../../adapters/storage/log/space.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { checkRecovered } from './check-recovered.ts'
import { openFiles } from './open-files.ts'
import { type Loss, SimulatedDisk } from './simulated-disk.ts'
import { verifyDisk } from './verify-disk.ts'
import { openSimulated, runWorkload } from './workload.ts'

const RESERVE_BYTES = 16_384
const ROLL_BYTES = 1_000_000
const FULL = { kind: 'quota', nothingWritten: true }
const LATER = { now: NOW + 1, trimmedBefore: NOW + 1_000_000, blocksMax: 1000 }

describe('on a disk that fills up', () => {
  test('appends fail, and reads, trims and deletions work', async () => {
    const { disk, session, writers } = await filled({ capacity: 200_000 })
    const [a, b] = writers
    expect(session.isFull?.()).toBe(true)
    for (const writer of writers) await expectStored(session, writer)
    await trim(a, a.head.tail.seqNum - 1)
    await expect(writerAtTail(session, a).append({ bodyBytes: 5_000 })).rejects.toMatchObject(FULL)
    await session.commit([{ kind: 'delete-log', logId: b.logId }])
    expect(await session.head(b.logId)).toBeUndefined()
    expect(disk.bytes).toBeLessThanOrEqual(200_000)
    await session.close()
  })

  test('trims free space, and appends work again', async () => {
    const { session, writers } = await filled({ capacity: 200_000 })
    for (const writer of writers) await trim(writer, writer.head.tail.seqNum)
    await vi.waitFor(async () => {
      await session.reclaim(LATER)
      expect(session.isFull?.()).toBe(false)
    })
    for (const writer of writers) {
      const retry = writerAtTail(session, writer)
      await retry.append({ bodyBytes: 5_000 })
      await retry.append({ bodyBytes: 5_000 })
    }
    await session.close()
  })

  test.each([65_536, ROLL_BYTES])(
    'trims of most records free space (journals are rolled at %i bytes)',
    async (rollBytes) => {
      const { session, writers } = await filled({ capacity: 300_000, rollBytes })
      for (const writer of writers) await trim(writer, writer.head.tail.seqNum - 1)
      await vi.waitFor(async () => {
        await session.reclaim(LATER)
        expect(session.isFull?.()).toBe(false)
      })
      await writerAtTail(session, writers[0]).append({ bodyBytes: 5_000 })
      await session.close()
    },
  )

  test('a trim is written although the appends of its group fail', async () => {
    const { session, writers } = await filled({ capacity: 200_000 })
    const [a, b] = writers
    const results = await Promise.allSettled([
      writerAtTail(session, b).append({ bodyBytes: 5_000 }),
      trim(a, a.head.tail.seqNum),
      session.commit([{ kind: 'create-log', logId: 'c', epoch: 1, createdAt: NOW }]),
    ])
    expect(results).toMatchObject([
      { status: 'rejected', reason: FULL },
      { status: 'fulfilled' },
      { status: 'rejected', reason: FULL },
    ])
    expect((await session.head('a'))?.trimPoint).toBe((await session.head('a'))!.tail.seqNum - 1)
  })
})

describe('opening a full disk', () => {
  test.each<Loss>(['nothing', 'some'])('works after a crash that loses %s', async (loss) => {
    const { disk, writers } = await filled({ capacity: 200_000 })
    for (let seed = 1; seed <= 2; seed++) {
      const crashed = disk.crashedAfter(disk.length, loss, new Prng(seed))
      crashed.capacity = crashed.bytes
      const session = await open(crashed)
      for (const writer of writers) await expectStored(session, writer)
      const [a] = writers
      await trim(writerAtTail(session, a), a.head.tail.seqNum - 1)
      await session.close()
    }
  })

  test('works without a reserve, and cuts off a torn tail', async () => {
    const { disk, writers } = await filled({ capacity: 200_000 })
    await removeReserve(disk)
    const crashed = disk.crashedAfter(disk.length, 'nothing', new Prng(1))
    const journal = crashed.names.findLast((name) => name.startsWith('journal'))!
    const file = await crashed.open(journal, 'update')
    const sound = await crashed.size(journal)
    await file.write(Buffer.from('a torn group'), 0, 12, sound)
    crashed.capacity = crashed.bytes
    const session = await open(crashed)
    expect(crashed.contentOf(journal)).toHaveLength(sound)
    for (const writer of writers) await expectStored(session, writer)
    await session.close()
    // Again, after a clean close that had no room for its group.
    const reopened = await open(crashed)
    for (const writer of writers) await expectStored(reopened, writer)
  })

  test.each([1])('makes the last group durable in its place before it is visible (seed %i)', async (seed) => {
    const disk = new SimulatedDisk(new Prng(seed))
    const killed = await open(disk)
    const writer = await LogWriter.create(killed, 'a')
    await writer.append({ bodyBytes: 3_000 })
    // The system loses the group, and shows it until the machine is restarted.
    disk.faults = (operation) => (['datasync', 'open'].includes(operation) ? 'EIO' : undefined)
    await expect(writer.append({ bodyBytes: 3_000 })).rejects.toMatchObject({ nothingWritten: false })
    disk.faults = () => undefined
    await removeReserve(disk)
    disk.capacity = disk.bytes
    const before = disk.length
    const session = await open(disk)
    await expectStored(session, writer)
    const after = disk.length
    for (let count = before; count <= after; count++) {
      const crashed = disk.crashedAfter(count, 'some', new Prng(count))
      const reopened = await open(crashed)
      if (count === after) await expectStored(reopened, writer)
      else expect([1, 2]).toContain((await reopened.head('a'))?.tail.seqNum)
    }
  })
})

describe('with any capacity', { tags: ['slow'] }, () => {
  const capacities = [3_000, 7_200, 12_800, 20_000, 29_600]

  test.each(capacities)(
    '%i bytes: no crash loses what was acknowledged, and a full disk opens',
    async (capacity) => {
      const prng = new Prng(capacity)
      const disk = new SimulatedDisk(prng)
      disk.capacity = capacity
      const history = await runWorkload(disk, prng, 2_000)
      expect(disk.bytes).toBeLessThanOrEqual(capacity)
      for (let count = 0; count <= disk.length; count += 1 + prng.below(40)) {
        const loss = prng.pick<Loss>(['nothing', 'everything', 'some', 'reordered'])
        const crashed = disk.crashedAfter(count, loss, new Prng(capacity * 1000 + count))
        crashed.capacity = crashed.bytes
        try {
          expect((await verifyDisk(crashed)).problems).toEqual([])
          const session = await openSimulated(crashed, 2_000)
          await checkRecovered(session, history, count)
          await session.close()
        } catch (error) {
          throw new Error(`after operation ${count}, losing ${loss}`, { cause: error })
        }
      }
    },
  )
})

type Pair = readonly [LogWriter, LogWriter]

function open(disk: SimulatedDisk, rollBytes = ROLL_BYTES): Promise<StorageSession> {
  return openFiles(disk, { durability: 'power-loss', rollBytes, reserveBytes: RESERVE_BYTES })
}

/** Two logs on a disk that is full, in an open storage. */
async function filled({ capacity, rollBytes }: { capacity: number; rollBytes?: number }) {
  const disk = new SimulatedDisk(new Prng(1))
  disk.capacity = capacity
  const session = await open(disk, rollBytes)
  const writers: Pair = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
  const full = await Promise.all(writers.map((writer) => fill(session, writer)))
  return { disk, session, writers: full as unknown as Pair }
}

/** Appends until the disk is full. Returns a writer of what was stored. */
async function fill(session: StorageSession, writer: LogWriter): Promise<LogWriter> {
  for (;;) {
    const { head, written } = writer
    const stored = [...written]
    try {
      await writer.append({ bodyBytes: 3_000 })
    } catch (error) {
      expect(StorageFailure.is(error) && error.kind).toBe('quota')
      return new LogWriter(session, writer.logId, head, stored)
    }
  }
}

/** A writer at the actual tail: a failed append leaves the writer ahead of it. */
function writerAtTail(session: StorageSession, { logId, head, written }: LogWriter): LogWriter {
  return new LogWriter(session, logId, head, written)
}

async function trim(writer: LogWriter, trimPoint: number): Promise<void> {
  await writer.append({ trimPoint, trimmedAt: NOW + writer.head.tail.seqNum + 1 })
  for (const expected of writer.written) expected.mayBeFreed ||= expected.block.endSeqNum <= trimPoint
}

async function expectStored(session: StorageSession, { logId, head, written }: LogWriter): Promise<void> {
  expect(await session.head(logId)).toEqual(head)
  checkRead(written, WHOLE_LOG, await session.read(logId, WHOLE_LOG))
}

async function removeReserve(disk: SimulatedDisk): Promise<void> {
  await disk.unlink(RESERVE_NAME)
  await disk.syncDirectory()
}
