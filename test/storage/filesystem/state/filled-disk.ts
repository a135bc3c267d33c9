import { fileName } from '../../../../adapters/storage/filesystem/files/file-header.ts'
import { writeCheckpoint } from '../../../../adapters/storage/filesystem/state/checkpoint.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { emptyHead } from '../../../../src/storage/heads.ts'
import { SimulatedDisk } from '../simulated-disk.ts'
import { openSimulated } from '../workload.ts'

/** So large that nothing is rolled. */
export const ROLL_BYTES = 1e9
export const CHECKPOINT = fileName('checkpoint', 1)
export const STREAMS = 100_000

export const keyOf = (i: number) => `k${String(i).padStart(6, '0')}`

/** A disk with a checkpoint of so many documents and logs, and an empty journal. */
export async function filledDisk(nextLog = STREAMS + 1): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const numbers = Array.from({ length: STREAMS }, (_, i) => i + 1)
  const documents = numbers.map((i) => ({ key: keyOf(i), document: { version: i, text: `"${i}"` } }))
  const logs = numbers.map((number) => ({
    number,
    id: `log-${number}`,
    head: emptyHead(1, number),
    runs: [],
  }))
  const collections = [{ collection: 'settings' as const, documents: [documents] }]
  const counters = { nextLog, nextVersion: STREAMS + 1 }
  await writeCheckpoint(
    disk,
    { journal: 1, ...counters, segments: [], collections, logs: [logs] },
    () => false,
  )
  const other = new SimulatedDisk(new Prng(2))
  const session = await openSimulated(other, ROLL_BYTES)
  await session.commit([{ kind: 'put', collection: 'usage', key: 'a', value: 1 }])
  await session.close()
  return diskWith(disk.contentOf(CHECKPOINT), other)
}

/** Returns a disk with this checkpoint, and the journal of another disk. */
export function diskWith(checkpoint: Buffer, other: SimulatedDisk): SimulatedDisk {
  const journal = fileName('journal', 1)
  return new SimulatedDisk(
    new Prng(1),
    new Map([
      [CHECKPOINT, checkpoint],
      [journal, other.contentOf(journal)],
    ]),
  )
}
