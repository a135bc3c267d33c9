import { block, NOW } from '../../../adapters/conformance/log-writer.ts'
import {
  encodeHeader,
  FILE_HEADER_BYTES,
  fileName,
  newHeader,
} from '../../../adapters/storage/filesystem/files/file-header.ts'
import { GroupWriter } from '../../../adapters/storage/filesystem/journal/group.ts'
import { SegmentWriter } from '../../../adapters/storage/filesystem/segment/segment-writer.ts'
import type { Change } from '../../../adapters/storage/filesystem/state/change.ts'
import { writeCheckpoint } from '../../../adapters/storage/filesystem/state/checkpoint.ts'
import {
  Run,
  type RunFacts,
  Segment,
  type SegmentFacts,
  type SegmentUse,
} from '../../../adapters/storage/filesystem/state/segment.ts'
import type { KeyedDocument } from '../../../adapters/storage/filesystem/state/stored-documents.ts'
import type { LogFacts } from '../../../adapters/storage/filesystem/state/stored-logs.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { emptyHead, type Head, type StoredBlock } from '../../../src/storage/contract.ts'
import { SimulatedDisk } from './simulated-disk.ts'

type Append = Extract<Change, { kind: 'append' }>

export const CREATED: Change = { kind: 'create-log', log: 1, id: 'a', epoch: 1, createdAt: NOW }

/** Where the head of a log is behind a block. */
export function headBehind({ endSeqNum, lastTimestamp }: StoredBlock, changed: Partial<Head> = {}): Head {
  const tail = { seqNum: endSeqNum, timestamp: lastTimestamp }
  return { ...emptyHead(1, NOW), tail, appendId: `append-${endSeqNum}`, ...changed }
}

export function appendOf(stored: StoredBlock, changed: Partial<Head> = {}): Append {
  return { kind: 'append', log: 1, block: stored, head: headBehind(stored, changed) }
}

/** A journal with a group and a frame for each change, by the writers that the storage has. */
export async function journalDisk(
  changes: readonly Change[],
  disk = new SimulatedDisk(new Prng(1)),
  number = 1,
): Promise<SimulatedDisk> {
  const header = newHeader('journal', number)
  const file = await disk.open(fileName('journal', number), 'create')
  await file.write(encodeHeader(header), 0)
  const writer = new GroupWriter()
  let offset = FILE_HEADER_BYTES
  for (const [index, change] of changes.entries()) {
    writer.begin(header.salt)
    writer.add([change])
    const group = writer.end(index + 1)
    await file.write(group, offset)
    offset += group.length
  }
  return disk
}

/** What stands in the checkpoint of {@link checkpointDisk}. */
export interface CheckpointFacts {
  readonly segment: SegmentFacts
  readonly log: LogFacts
  /** Changes the use of the segment by the log. */
  readonly use?: (segment: SegmentUse) => Partial<SegmentUse>
  /** Of the collection `settings`. */
  readonly documents: readonly KeyedDocument[]
  readonly nextLog: number
  readonly nextVersion: number
}

/** Three chunks with two blocks each, of three records each. */
export function storedBlocks(): StoredBlock[] {
  return keptBlocks().map((stored, i) => ({ ...stored, expiresAt: NOW + 1000 + i }))
}

/** The same that never expire. */
export function keptBlocks(): StoredBlock[] {
  return Array.from({ length: 6 }, (_, i) => block({ firstSeqNum: 3 * i, count: 3, bodyBytes: 10_000 }))
}

export function freed(from: number, to: number, blocks: number, meteredBytes: number): Change {
  return { kind: 'free', log: 1, ranges: [{ from, to, blocks, meteredBytes, bytes: meteredBytes }] }
}

/** The segment with its use by these runs. */
export function usedBy(facts: SegmentFacts, runs: readonly RunFacts[]): Segment {
  const segment = new Segment(facts)
  for (const run of runs) if (run.segment === facts.number) segment.add(new Run(segment, run))
  return segment
}

function lyingUse(segment: Segment, lie: CheckpointFacts['use']): Segment {
  segment.restore({ ...segment, ...lie?.(segment) })
  return segment
}

/**
 * A log that lies in a segment, a checkpoint that says so, and a journal with the changes since; `lie`
 * changes what the checkpoint says.
 */
export async function checkpointDisk(
  lie: (facts: CheckpointFacts) => CheckpointFacts,
  blocks: readonly StoredBlock[] = storedBlocks(),
  changes: readonly Change[] = [],
): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const writer = await SegmentWriter.create(disk, 1)
  writer.beginRun(1)
  for (const one of blocks) await writer.add(one)
  const run = (await writer.endRun()) as RunFacts
  await writer.finish()
  const log = { number: 1, id: 'a', head: headBehind(blocks.at(-1)!), runs: [run] }
  const documents = [{ key: 'one', document: { version: 1, text: '1' } }]
  const facts = lie({ segment: writer.facts, log, documents, nextLog: 2, nextVersion: 2 })
  const { segment, nextLog, nextVersion } = facts
  await writeCheckpoint(
    disk,
    {
      journal: 1,
      nextLog,
      nextVersion,
      segments: [lyingUse(usedBy(segment, facts.log.runs), facts.use)],
      collections: [{ collection: 'settings', documents: facts.documents }],
      logs: [facts.log],
    },
    () => false,
  )
  return journalDisk(changes, disk)
}
