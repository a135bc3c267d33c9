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

/** Resolves to the logs of which a call freed records, or to the kind of its failure. */
async function outcomeOf(session: StorageSession): Promise<string> {
  try {
    return (await session.reclaim(RECLAIM)).logIds.join()
  } catch (error) {
    return (error as { kind: string }).kind
  }
}

/** A reopened storage with some blocks of each log in one segment. */
async function withLogsInSegment(logIds: readonly string[]) {
  const disk = new SimulatedDisk(new Prng(1))
  let isUnreadable = false
  const files = hookedFiles(disk, (operation, name) => {
    if (isUnreadable && operation === 'read' && name.startsWith('segment')) throw systemError('EIO')
  })
  const hasCheckpoint = () => disk.names.some((name) => /^checkpoint-\d+$/.test(name))
  const session = await openSimulated(files, 20_000, 'power-loss', NEVER_LARGE)
  const writers: LogWriter[] = []
  for (const logId of logIds) writers.push(await LogWriter.create(session, logId))
  for (const [i, writer] of writers.entries()) await writer.appendUnmergeable(10, { bodyBytes: 500 + i })
  const filler = await LogWriter.create(session, 'filler')
  while (!hasCheckpoint()) await filler.append({ bodyBytes: 500 })
  return {
    session,
    writers,
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
