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
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { Head, StoredBlock } from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { SimulatedDisk } from './simulated-disk.ts'

type Append = Extract<Change, { kind: 'append' }>

export const CREATED: Change = { kind: 'create-log', log: 1, id: 'a', epoch: 1, createdAt: NOW }

/** The head of a log after a block. */
export function headAfter({ endSeqNum, lastTimestamp }: StoredBlock, changed: Partial<Head> = {}): Head {
  const tail = { seqNum: endSeqNum, timestamp: lastTimestamp }
  return { ...emptyHead(1, NOW), tail, appendId: `append-${endSeqNum}`, ...changed }
}

export function appendOf(stored: StoredBlock, changed: Partial<Head> = {}): Append {
  return { kind: 'append', log: 1, block: stored, head: headAfter(stored, changed) }
}

/** A journal with a group and a frame for each change, written by the code of the storage. */
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

/** The content of the checkpoint of {@link checkpointDisk}. */
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
  return permanentBlocks().map((stored, i) => ({ ...stored, expiresAt: NOW + 1000 + i }))
}

/** The same blocks without expiry. */
export function permanentBlocks(): StoredBlock[] {
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

function changedUse(segment: Segment, change: CheckpointFacts['use']): Segment {
  segment.restore({ ...segment, ...change?.(segment) })
  return segment
}

/**
 * A disk with a log in a segment, its checkpoint, and a journal with later changes. `change` edits the
 * checkpoint.
 */
export async function checkpointDisk(
  change: (facts: CheckpointFacts) => CheckpointFacts,
  blocks: readonly StoredBlock[] = storedBlocks(),
  changes: readonly Change[] = [],
): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const writer = await SegmentWriter.create(disk, 1)
  writer.beginRun(1)
  for (const stored of blocks) await writer.add(stored)
  const run = (await writer.endRun()) as RunFacts
  await writer.finish()
  const log = { number: 1, id: 'a', head: headAfter(blocks.at(-1)!), runs: [run] }
  const documents = [{ key: 'one', document: { version: 1, text: '1' } }]
  const facts = change({ segment: writer.facts, log, documents, nextLog: 2, nextVersion: 2 })
  const { segment, nextLog, nextVersion } = facts
  await writeCheckpoint(
    disk,
    {
      journal: 1,
      nextLog,
      nextVersion,
      segments: [changedUse(usedBy(segment, facts.log.runs), facts.use)],
      collections: [{ collection: 'settings', documents: [facts.documents] }],
      logs: [[facts.log]],
    },
    () => false,
  )
  return journalDisk(changes, disk)
}

/** Verifies the files of a disk that no engine wrote. */
export function verifyDisk(disk: SimulatedDisk) {
  return verifyFiles(disk, { ofEngine: false })
}
