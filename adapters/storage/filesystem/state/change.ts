import type { RetentionExtension } from '../../../../src/core/retention.ts'
import type { Collection, Head, LogStart, StoredBlock } from '../../../../src/storage/contract.ts'
import type { WriteStateChange } from '../../../../src/storage/heads.ts'
import type { ByteReader, ByteWriter } from '../files/bytes.ts'
import {
  readBlock,
  readExtensions,
  readHead,
  readList,
  readRanges,
  readRun,
  readSegment,
  readStart,
  readWriteStateChange,
  writeBlock,
  writeExtensions,
  writeHead,
  writeRanges,
  writeRun,
  writeSegment,
  writeStart,
  writeWriteStateChange,
} from './field-codec.ts'
import type { JournalFile } from './log.ts'
import type { FreedRange, RunFacts, SegmentFacts } from './segment.ts'
import type { SeqRanges } from './seq-ranges.ts'

/**
 * A change of the state. It is written to the journal and then applied, and applied again at each opening.
 */
export type Change =
  | {
      readonly kind: 'append'
      readonly log: number
      readonly block: StoredBlock
      /** The head as an opening reads it, without the write state. */
      readonly head: Head
      /** The change of the write state of the log. */
      readonly writeState?: WriteStateChange | undefined
    }
  | {
      readonly kind: 'put'
      readonly collection: Collection
      readonly key: string
      readonly version: number
      readonly text: string
    }
  | { readonly kind: 'delete'; readonly collection: Collection; readonly key: string }
  | {
      readonly kind: 'create-log'
      readonly log: number
      readonly id: string
      readonly epoch: number
      readonly createdAt: number
      readonly start?: LogStart | undefined
    }
  | { readonly kind: 'set-epoch'; readonly log: number; readonly epoch: number }
  | { readonly kind: 'extend'; readonly log: number; readonly extensions: readonly RetentionExtension[] }
  | { readonly kind: 'delete-log'; readonly log: number }
  | { readonly kind: 'free'; readonly log: number; readonly ranges: readonly FreedRange[] }
  | {
      readonly kind: 'compact'
      readonly segment: SegmentFacts
      /** Numbers of the segments whose runs are replaced. */
      readonly replaced: readonly number[]
      readonly runs: readonly CompactedRun[]
    }
  | { readonly kind: 'closed' }

export interface CompactedRun {
  readonly log: number
  readonly run: RunFacts
  /** Ranges that were freed before the compaction began and are not in the new run. */
  readonly omitted: SeqRanges
}

/** The place of the frame of a change. */
export interface FramePlace {
  readonly journal: JournalFile
  readonly offset: number
  readonly bytes: number
}

/** Persisted: keep stable. */
const KINDS = {
  append: 1,
  put: 2,
  delete: 3,
  'create-log': 4,
  'set-epoch': 5,
  'delete-log': 6,
  free: 7,
  compact: 8,
  closed: 9,
  extend: 10,
} as const satisfies Record<Change['kind'], number>

/** An append that changes the write state: few do. */
const APPEND_WITH_WRITE_STATE = 11

export function writeChange(writer: ByteWriter, change: Change): void {
  const changesWriteState = change.kind === 'append' && change.writeState !== undefined
  writer.byte(changesWriteState ? APPEND_WITH_WRITE_STATE : KINDS[change.kind])
  switch (change.kind) {
    case 'append':
      writer.varint(change.log)
      writeBlock(writer, change.block)
      writeHead(writer, change.head)
      if (change.writeState !== undefined) writeWriteStateChange(writer, change.writeState)
      return
    case 'put':
      writer.string(change.collection)
      writer.string(change.key)
      writer.varint(change.version)
      writer.string(change.text)
      return
    case 'delete':
      writer.string(change.collection)
      writer.string(change.key)
      return
    case 'create-log':
      writer.varint(change.log)
      writer.string(change.id)
      writer.varint(change.epoch)
      writer.varint(change.createdAt)
      writeStart(writer, change.start)
      return
    case 'set-epoch':
      writer.varint(change.log)
      writer.varint(change.epoch)
      return
    case 'extend':
      writer.varint(change.log)
      writeExtensions(writer, change.extensions)
      return
    case 'delete-log':
      writer.varint(change.log)
      return
    case 'free':
      writer.varint(change.log)
      writer.varint(change.ranges.length)
      for (const { from, to, blocks, meteredBytes, bytes } of change.ranges) {
        for (const number of [from, to, blocks, meteredBytes, bytes]) writer.varint(number)
      }
      return
    case 'compact':
      writeSegment(writer, change.segment)
      writer.varint(change.replaced.length)
      for (const number of change.replaced) writer.varint(number)
      writer.varint(change.runs.length)
      for (const { log, run, omitted } of change.runs) {
        writer.varint(log)
        writeRun(writer, run)
        writeRanges(writer, omitted)
      }
      return
    case 'closed':
  }
}

/** The block that the changes append, at most one. Its data follow the changes. */
export function appendedBlock(changes: readonly Change[]): StoredBlock | undefined {
  for (const change of changes) if (change.kind === 'append') return change.block
  return undefined
}

/** Whether the fields of a frame mark a clean close. */
export function isClosingFrame(fields: Uint8Array): boolean {
  return fields.length === 1 && fields[0] === KINDS.closed
}

export interface AppendedBlock {
  /** Number of the log. */
  readonly log: number
  readonly block: StoredBlock
}

/**
 * Decodes what a frame with these data appends, and skips the head, which only an opening needs. Undefined if
 * the frame does not begin with an append. Throws `RangeError` if it is malformed.
 */
export function readAppend(reader: ByteReader, data: Uint8Array): AppendedBlock | undefined {
  const kind = reader.byte()
  if (kind !== KINDS.append && kind !== APPEND_WITH_WRITE_STATE) return undefined
  return { log: reader.varint(), block: { ...readBlock(reader), data } }
}

/** Decodes the changes of a frame with these data. Throws `RangeError` if the frame is malformed. */
export function readChanges(reader: ByteReader, data: Uint8Array): Change[] {
  const changes: Change[] = []
  while (reader.left > 0) changes.push(readChange(reader, data))
  return changes
}

function readChange(reader: ByteReader, data: Uint8Array): Change {
  const kind = reader.byte()
  switch (kind) {
    case KINDS.append:
    case APPEND_WITH_WRITE_STATE:
      return {
        kind: 'append',
        log: reader.varint(),
        block: { ...readBlock(reader), data },
        head: readHead(reader),
        writeState: kind === KINDS.append ? undefined : readWriteStateChange(reader),
      }
    case KINDS.put:
      return {
        kind: 'put',
        collection: reader.string() as Collection,
        key: reader.string(),
        version: reader.varint(),
        text: reader.string(),
      }
    case KINDS.delete:
      return { kind: 'delete', collection: reader.string() as Collection, key: reader.string() }
    case KINDS['create-log']:
      return {
        kind: 'create-log',
        log: reader.varint(),
        id: reader.string(),
        epoch: reader.varint(),
        createdAt: reader.varint(),
        start: readStart(reader),
      }
    case KINDS['set-epoch']:
      return { kind: 'set-epoch', log: reader.varint(), epoch: reader.varint() }
    case KINDS.extend:
      return { kind: 'extend', log: reader.varint(), extensions: readExtensions(reader) }
    case KINDS['delete-log']:
      return { kind: 'delete-log', log: reader.varint() }
    case KINDS.free: {
      const log = reader.varint()
      const ranges = readList(reader, () => ({
        from: reader.varint(),
        to: reader.varint(),
        blocks: reader.varint(),
        meteredBytes: reader.varint(),
        bytes: reader.varint(),
      }))
      return { kind: 'free', log, ranges }
    }
    case KINDS.compact:
      return {
        kind: 'compact',
        segment: readSegment(reader),
        replaced: readList(reader, () => reader.varint()),
        runs: readList(reader, () => ({
          log: reader.varint(),
          run: readRun(reader),
          omitted: readRanges(reader),
        })),
      }
    case KINDS.closed:
      return { kind: 'closed' }
    default:
      throw new RangeError(`unknown kind of change: ${kind}`)
  }
}
