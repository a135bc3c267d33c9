import type { RetentionExtension, Trim } from '../../../src/core/retention.ts'
import type { ProducerState } from '../../../src/core/sequence.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head, LogStart } from '../../../src/storage/contract.ts'
import type { WriteStateChange } from '../../../src/storage/heads.ts'
import type { ByteReader, ByteWriter } from './bytes.ts'

/**
 * A change of the state, as a frame of a journal holds it. It is written and then applied, and applied again
 * at each opening.
 */
export type Change =
  /** Adds a piece of a block that the next piece of the log continues. */
  | { readonly kind: 'part'; readonly log: string; readonly block: BlockSummary }
  /** Adds a complete block of an append that has further ones. */
  | { readonly kind: 'block'; readonly log: string; readonly block: BlockSummary }
  | {
      readonly kind: 'append'
      readonly log: string
      readonly block: BlockSummary
      readonly head: Head
      /** The change of the write state, which is not part of `head`. */
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
      readonly log: string
      readonly epoch: number
      readonly createdAt: number
      readonly start: LogStart
    }
  | {
      readonly kind: 'set-epoch'
      readonly log: string
      readonly epoch: number
      readonly extensions: readonly RetentionExtension[]
    }
  | { readonly kind: 'delete-log'; readonly log: string }
  /** Frees all blocks that end at or below `below`. */
  | { readonly kind: 'free'; readonly log: string; readonly below: number; readonly meteredBytes: number }

/** A change that adds a block, whose data its frame holds. */
type BlockChange = Extract<Change, { readonly kind: 'part' | 'block' | 'append' }>

/** Persisted: keep stable. */
const KINDS = {
  part: 1,
  append: 2,
  put: 3,
  delete: 4,
  'create-log': 5,
  'set-epoch': 6,
  'delete-log': 7,
  free: 8,
  block: 10,
} as const satisfies Record<Change['kind'], number>

export function isBlockChange(change: Change): change is BlockChange {
  return change.kind === 'append' || change.kind === 'part' || change.kind === 'block'
}

/** An append that changes the write state: few do. */
const APPEND_WITH_WRITE_STATE = 9

export function writeChange(writer: ByteWriter, change: Change): void {
  const changesWriteState = change.kind === 'append' && change.writeState !== undefined
  writer.byte(changesWriteState ? APPEND_WITH_WRITE_STATE : KINDS[change.kind])
  if (change.kind === 'put' || change.kind === 'delete') {
    writer.string(change.collection)
    writer.string(change.key)
    if (change.kind === 'delete') return
    writer.varint(change.version)
    writer.string(change.text)
    return
  }
  writer.string(change.log)
  switch (change.kind) {
    case 'part':
    case 'block':
      writeSummary(writer, change.block)
      return
    case 'append':
      writeSummary(writer, change.block)
      writeHead(writer, change.head)
      if (change.writeState !== undefined) writeWriteStateChange(writer, change.writeState)
      return
    case 'create-log':
      writer.varint(change.epoch)
      writer.varint(change.createdAt)
      writer.varint(change.start.tail.seqNum)
      writer.varint(change.start.tail.timestamp)
      writer.string(change.start.fencingToken)
      return
    case 'set-epoch':
      writer.varint(change.epoch)
      writeExtensions(writer, change.extensions)
      return
    case 'free':
      writer.varint(change.below)
      writer.varint(change.meteredBytes)
      return
    case 'delete-log':
  }
}

/** Throws `RangeError` if the change is malformed. */
export function readChange(reader: ByteReader): Change {
  const kind = reader.byte()
  switch (kind) {
    case KINDS.part:
      return { kind: 'part', log: reader.string(), block: readSummary(reader) }
    case KINDS.block:
      return { kind: 'block', log: reader.string(), block: readSummary(reader) }
    case KINDS.append:
    case APPEND_WITH_WRITE_STATE:
      return {
        kind: 'append',
        log: reader.string(),
        block: readSummary(reader),
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
        log: reader.string(),
        epoch: reader.varint(),
        createdAt: reader.varint(),
        start: {
          tail: { seqNum: reader.varint(), timestamp: reader.varint() },
          fencingToken: reader.string(),
        },
      }
    case KINDS['set-epoch']:
      return {
        kind: 'set-epoch',
        log: reader.string(),
        epoch: reader.varint(),
        extensions: readExtensions(reader),
      }
    case KINDS['delete-log']:
      return { kind: 'delete-log', log: reader.string() }
    case KINDS.free:
      return { kind: 'free', log: reader.string(), below: reader.varint(), meteredBytes: reader.varint() }
    default:
      throw new RangeError(`unknown kind of change: ${kind}`)
  }
}

/** The fields that changes, segments and checkpoints share. Persisted: keep stable. */

export function writeSummary(writer: ByteWriter, block: BlockSummary): void {
  writer.varint(block.firstSeqNum)
  writer.varint(block.endSeqNum - block.firstSeqNum)
  writer.varint(block.firstTimestamp)
  writer.varint(block.lastTimestamp - block.firstTimestamp)
  writer.varint(block.meteredBytes)
  writer.optional(block.expiresAt)
}

export function readSummary(reader: ByteReader): BlockSummary {
  const firstSeqNum = reader.varint()
  const endSeqNum = reader.varintAfter(firstSeqNum)
  const firstTimestamp = reader.varint()
  const lastTimestamp = reader.varintAfter(firstTimestamp)
  return {
    firstSeqNum,
    endSeqNum,
    firstTimestamp,
    lastTimestamp,
    meteredBytes: reader.varint(),
    expiresAt: reader.optional(),
  }
}

/** Leaves out extensions and write state, which most appends do not change. */
export function writeHead(writer: ByteWriter, head: Head): void {
  writer.varint(head.epoch)
  writer.varint(head.tail.seqNum)
  writer.varint(head.tail.timestamp)
  writer.varint(head.trimPoint)
  writer.string(head.fencingToken)
  writer.string(head.appendId)
  writer.varint(head.appendedAt)
  writer.varint(head.trims.length)
  for (const { point, at } of head.trims) {
    writer.varint(point)
    writer.varint(at)
  }
}

/** Shared by the many logs without trims. */
const NO_TRIMS: readonly Trim[] = Object.freeze([])

export function readHead(reader: ByteReader): Head {
  const head = {
    epoch: reader.varint(),
    tail: { seqNum: reader.varint(), timestamp: reader.varint() },
    trimPoint: reader.varint(),
    fencingToken: reader.string(),
    appendId: reader.string(),
    appendedAt: reader.varint(),
  }
  const trims = readList(reader, () => ({ point: reader.varint(), at: reader.varint() }))
  return { ...head, trims: trims.length === 0 ? NO_TRIMS : trims }
}

export function writeExtensions(writer: ByteWriter, extensions: readonly RetentionExtension[]): void {
  writer.varint(extensions.length)
  for (const { below, after, until } of extensions) {
    writer.varint(below)
    writer.varint(after)
    writer.optional(until)
  }
}

export function readExtensions(reader: ByteReader): readonly RetentionExtension[] {
  return readList(reader, () => ({
    below: reader.varint(),
    after: reader.varint(),
    until: reader.optional(),
  }))
}

const FLAG_CLOSED = 1
const FLAG_STREAM_SEQ = 2

export function writeWriteStateChange(writer: ByteWriter, change: WriteStateChange): void {
  const { closed, streamSeq, producers, dropped } = change
  writer.byte((closed ? FLAG_CLOSED : 0) | (streamSeq === undefined ? 0 : FLAG_STREAM_SEQ))
  if (streamSeq !== undefined) writer.string(streamSeq)
  writer.varint(producers.length)
  for (const { id, epoch, seq, appendedAt, start, end } of producers) {
    writer.string(id)
    writer.varint(epoch)
    writer.varint(seq)
    writer.varint(appendedAt)
    writer.varint(start.seqNum)
    writer.varint(start.timestamp)
    writer.varint(end.seqNum - start.seqNum)
    writer.varint(end.timestamp - start.timestamp)
  }
  writer.varint(dropped.length)
  for (const id of dropped) writer.string(id)
}

export function readWriteStateChange(reader: ByteReader): WriteStateChange {
  const flags = reader.byte()
  if (flags > (FLAG_CLOSED | FLAG_STREAM_SEQ)) throw new RangeError(`unknown flags: ${flags}`)
  return {
    closed: flags & FLAG_CLOSED ? true : undefined,
    streamSeq: flags & FLAG_STREAM_SEQ ? reader.string() : undefined,
    producers: readList(reader, () => readProducer(reader)),
    dropped: readList(reader, () => reader.string()),
  }
}

function readProducer(reader: ByteReader): ProducerState {
  const id = reader.string()
  const [epoch, seq, appendedAt] = [reader.varint(), reader.varint(), reader.varint()]
  const start = { seqNum: reader.varint(), timestamp: reader.varint() }
  const seqNum = reader.varintAfter(start.seqNum)
  const timestamp = reader.varintAfter(start.timestamp)
  return { id, epoch, seq, appendedAt, start, end: { seqNum, timestamp } }
}

/** Reads a count and that many items. */
export function readList<Item>(reader: ByteReader, readItem: () => Item): Item[] {
  const count = reader.varint()
  // Every item has at least one byte: a damaged count must not allocate memory.
  if (count > reader.left) throw new RangeError('truncated')
  const items: Item[] = []
  for (let i = 0; i < count; i++) items.push(readItem())
  return items
}
