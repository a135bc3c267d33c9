import { expect, test } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../../adapters/conformance/model.ts'
import { ByteReader } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import { SequentialReader } from '../../../../adapters/storage/filesystem/files/sequential-reader.ts'
import { readGroups } from '../../../../adapters/storage/filesystem/journal/journal-reader.ts'
import { type Change, readChanges } from '../../../../adapters/storage/filesystem/state/change.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { openFiles } from '../open-files.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { NEVER_LARGE } from '../workload.ts'

const LOGS = 300
const ROLL_BYTES = 120_000
/** How many logs are loaded while appends wait. */
const GROUP_RUNS_MAX = 64

test('a compaction of many logs loads few of them in a turn, and appends are written between', async () => {
  const disk = new SimulatedDisk(new Prng(1))
  const options = { durability: 'power-loss', rollBytes: ROLL_BYTES, largeBlockBytes: NEVER_LARGE } as const
  const session = await openFiles(disk, options)
  const create = (logId: string) => LogWriter.create(session, logId)
  const writers = await Promise.all(Array.from({ length: LOGS }, (_, i) => create(`log-${i}`)))
  await Promise.all(writers.map((writer) => writer.append({ bodyBytes: 10 })))
  const [other, large] = [await create('other'), await create('large')]
  const has = (kind: string) => disk.names.some((name) => new RegExp(`^${kind}-\\d+$`).test(name))
  while (!has('checkpoint')) await large.append({ bodyBytes: 10_000 })
  // Less than half of the segment is in use from here on.
  await session.commit([{ kind: 'delete-log', logId: 'large' }])
  const compactions = () => changesIn(disk)
  for (let runs = 0; runs < LOGS; ) {
    await other.append({ bodyBytes: 10 })
    runs = (await compactions()).reduce((sum, change) => sum + (change.runs?.length ?? 0), 0)
    expect(other.written.length).toBeLessThan(2_000)
  }
  const changes = await compactions()
  const sizes = changes.flatMap(({ runs }) => runs?.length ?? [])
  expect(Math.max(...sizes)).toBeLessThanOrEqual(GROUP_RUNS_MAX)
  expect(new Set(changes.flatMap(({ segment }) => segment?.number ?? [])).size).toBe(1)
  const [first, last] = [
    changes.findIndex(({ runs }) => runs !== undefined),
    changes.findLastIndex(({ runs }) => runs !== undefined),
  ]
  expect(changes.slice(first, last).some(({ kind }) => kind === 'append')).toBe(true)
  await session.close()
  const reopened = await openFiles(disk, options)
  for (const writer of [...writers, other]) {
    checkRead(writer.written, WHOLE_LOG, await reopened.read(writer.logId, WHOLE_LOG))
  }
  await reopened.close()
})

interface FoundChange {
  readonly kind: Change['kind']
  readonly runs?: readonly unknown[]
  readonly segment?: { readonly number: number }
}

/** The changes in the journals, in order. */
async function changesIn(disk: SimulatedDisk): Promise<FoundChange[]> {
  const changes: FoundChange[] = []
  for (const name of disk.names.filter((one) => /^journal-\d+$/.test(one))) {
    const reader = await SequentialReader.open(disk, name)
    for await (const { frames } of readGroups(reader, await reader.header(), undefined)) {
      for (const { fields, data } of frames) changes.push(...readChanges(new ByteReader(fields), data))
    }
    await reader.close()
  }
  return changes
}
