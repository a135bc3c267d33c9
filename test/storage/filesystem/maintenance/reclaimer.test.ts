import { expect, test } from 'vitest'
import { LogWriter, NOW } from '../../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../../src/storage/contract.ts'
import { hookedFiles, systemError } from '../hooked-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { NEVER_LARGE, openSimulated } from '../workload.ts'

const RECLAIM = { now: NOW, trimmedBefore: NOW, blocksMax: 1_000 }

test('a damaged chunk of one log does not keep the records of others from being freed', async () => {
  const { session, writers, damage } = await withLogsInSegment(['a', 'b', 'c'])
  damage(writers[0]!)
  for (const writer of writers) await writer.append({ trimPoint: 3, trimmedAt: NOW })
  const first = await session.reclaim(RECLAIM)
  expect(first.more).toBe(true)
  expect([...first.logIds].sort()).toEqual(['b', 'c'])
  await expect(session.reclaim(RECLAIM)).rejects.toMatchObject({ kind: 'corrupt' })
  // Nothing else is left to free, so the same failure is reported at once.
  await expect(session.reclaim(RECLAIM)).rejects.toMatchObject({ kind: 'corrupt' })
  await session.close()
})

test('a failure is reported although more becomes due with each call', async () => {
  const { session, writers, damage } = await withLogsInSegment(['a', 'b'])
  const [damaged, other] = writers
  damage(damaged!)
  await damaged!.append({ trimPoint: 3, trimmedAt: NOW })
  const calls: string[] = []
  for (let trimPoint = 2; calls.length < 4; trimPoint++) {
    await other!.append({ trimPoint, trimmedAt: NOW })
    calls.push(await outcomeOf(session))
  }
  expect(calls).toEqual(['b', 'corrupt', 'b', 'corrupt'])
  await session.close()
})

test('a log that could not be read is freed once it can be read', async () => {
  const { session, writers, setUnreadable } = await withLogsInSegment(['a', 'b'])
  for (const writer of writers) await writer.append({ trimPoint: 3, trimmedAt: NOW })
  setUnreadable(true)
  await expect(session.reclaim(RECLAIM)).rejects.toMatchObject({ kind: 'io' })
  setUnreadable(false)
  const { more, logIds } = await session.reclaim(RECLAIM)
  expect(more).toBe(false)
  expect([...logIds].sort()).toEqual(['a', 'b'])
  await session.close()
})

test('a call examines a limited number of logs that have nothing to free', async () => {
  const logIds = Array.from({ length: 30 }, (_, i) => `log-${i}`)
  const { session, writers, reads } = await withLogsInSegment(logIds, { blocks: 1, count: 2 })
  for (const writer of writers) await writer.append({ trimPoint: 1, trimmedAt: NOW })
  const calls: unknown[] = []
  for (let more = true; more && calls.length < 10; ) {
    reads.length = 0
    more = (await session.reclaim({ ...RECLAIM, blocksMax: 10 })).more
    calls.push({ reads: reads.length, more })
  }
  expect(calls).toEqual([
    { reads: 10, more: true },
    { reads: 10, more: true },
    { reads: 10, more: false },
  ])
  await session.close()
})

test('reports a failure after all other logs, even if a call examines fewer than are damaged', async () => {
  const logIds = Array.from({ length: 30 }, (_, i) => `log-${i}`)
  const { session, writers, setUnreadable } = await withLogsInSegment(logIds)
  for (const writer of writers) await writer.append({ trimPoint: 3, trimmedAt: NOW })
  setUnreadable(true)
  const limits = { ...RECLAIM, blocksMax: 10 }
  for (let i = 0; i < 2; i++) {
    expect(await session.reclaim(limits)).toEqual({ more: true, logIds: [] })
    expect(await session.reclaim(limits)).toEqual({ more: true, logIds: [] })
    await expect(session.reclaim(limits)).rejects.toMatchObject({ kind: 'io' })
  }
  await session.close()
})

/** Resolves to the logs of which a call freed records, or to the kind of its failure. */
async function outcomeOf(session: StorageSession): Promise<string> {
  try {
    return (await session.reclaim(RECLAIM)).logIds.join()
  } catch (error) {
    return (error as { kind: string }).kind
  }
}

/** A storage with the blocks of each log in one segment. */
async function withLogsInSegment(logIds: readonly string[], { blocks = 10, count = 1 } = {}) {
  const disk = new SimulatedDisk(new Prng(1))
  let isUnreadable = false
  /** The files of the reads of segments. */
  const reads: string[] = []
  const files = hookedFiles(disk, (operation, name) => {
    if (operation !== 'read' || !name.startsWith('segment')) return
    reads.push(name)
    if (isUnreadable) throw systemError('EIO')
  })
  const hasCheckpoint = () => disk.names.some((name) => /^checkpoint-\d+$/.test(name))
  const session = await openSimulated(files, 300_000, 'power-loss', NEVER_LARGE)
  const writers: LogWriter[] = []
  for (const logId of logIds) writers.push(await LogWriter.create(session, logId))
  for (const [i, writer] of writers.entries()) {
    await writer.appendUnmergeable(blocks, { count, bodyBytes: 500 + i })
  }
  const filler = await LogWriter.create(session, 'filler')
  while (!hasCheckpoint()) await filler.append({ bodyBytes: 10_000 })
  return {
    session,
    writers,
    reads,
    setUnreadable: (value: boolean) => {
      isUnreadable = value
    },
    /** Damages the description of the first chunk of a log, before the block that it begins with. */
    damage: ({ written }: LogWriter) => {
      const segment = disk.names.find((name) => name.startsWith('segment'))!
      const content = disk.contentOf(segment)
      const start = content.indexOf(written[0]!.block.data)
      expect(start).toBeGreaterThan(0)
      content[start - 1]! ^= 1
    },
  }
}
