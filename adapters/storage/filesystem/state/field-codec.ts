import type { RetentionExtension, Trim } from '../../../../src/core/retention.ts'
import type { ProducerState } from '../../../../src/core/stream-state.ts'
import type { Head, LogStart } from '../../../../src/storage/contract.ts'
import type { WriteStateChange } from '../../../../src/storage/heads.ts'
import type { ByteReader, ByteWriter } from '../files/bytes.ts'
import type { BlockFacts } from './log.ts'
import type { RunFacts, SegmentFacts, SegmentUse } from './segment.ts'
import { NO_RANGES, type SeqRange, type SeqRanges } from './seq-ranges.ts'

/** Fields that several kinds of frame share (docs/storage-format.md). Persisted: keep stable. */

export function writeBlock(writer: ByteWriter, block: BlockFacts): void {
  writer.varint(block.firstSeqNum)
  writer.varint(block.endSeqNum - block.firstSeqNum)
  writer.varint(block.firstTimestamp)
  writer.varint(block.lastTimestamp - block.firstTimestamp)
  writer.varint(block.meteredBytes)
  writer.optional(block.expiresAt)
}

export function readBlock(reader: ByteReader): BlockFacts {
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

/** Leaves out the extensions, which appends do not change. */
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

/** Reads a head without the extensions, which belong to the log. */
export function readHead(reader: ByteReader): Head {
  return {
    epoch: reader.varint(),
    tail: { seqNum: reader.varint(), timestamp: reader.varint() },
    trimPoint: reader.varint(),
    fencingToken: reader.string(),
    appendId: reader.string(),
    appendedAt: reader.varint(),
    trims: readTrims(reader),
  }
}

function readTrims(reader: ByteReader): readonly Trim[] {
  const trims = readList(reader, () => ({ point: reader.varint(), at: reader.varint() }))
  return trims.length === 0 ? NO_TRIMS : trims
}

/** Most logs start at 0 without a fencing token. */
export function writeStart(writer: ByteWriter, start: LogStart | undefined): void {
  writer.varint(start?.tail.seqNum ?? 0)
  writer.varint(start?.tail.timestamp ?? 0)
  writer.string(start?.fencingToken ?? '')
}

export function readStart(reader: ByteReader): LogStart {
  return {
    tail: { seqNum: reader.varint(), timestamp: reader.varint() },
    fencingToken: reader.string(),
  }
}

/** Shared by the many logs without trims. */
const NO_TRIMS: readonly Trim[] = []

export function writeSegment(writer: ByteWriter, { number, salt, bytes, journal }: SegmentFacts): void {
  writer.varint(number)
  writer.varint(salt)
  writer.varint(bytes)
  writer.varint(journal)
}

export function readSegment(reader: ByteReader): SegmentFacts {
  return {
    number: reader.varint(),
    salt: reader.varint(),
    bytes: reader.varint(),
    journal: reader.varint(),
  }
}

export function writeUse(writer: ByteWriter, { runs, liveBytes, smallRuns, smallBytes }: SegmentUse): void {
  for (const number of [runs, liveBytes, smallRuns, smallBytes]) writer.varint(number)
}

export function readUse(reader: ByteReader): SegmentUse {
  return {
    runs: reader.varint(),
    liveBytes: reader.varint(),
    smallRuns: reader.varint(),
    smallBytes: reader.varint(),
  }
}

export function writeRun(writer: ByteWriter, run: RunFacts): void {
  writer.varint(run.segment)
  writer.varint(run.offset)
  writer.varint(run.bytes)
  writer.varint(run.indexBytes)
  writer.varint(run.firstSeqNum)
  writer.varint(run.endSeqNum - run.firstSeqNum)
  writer.varint(run.lastTimestamp)
  writer.varint(run.blocks)
  writer.varint(run.meteredBytes)
  writer.varint(run.liveBytes)
  writer.optional(run.minExpiry)
  writer.optional(run.maxExpiry)
  writeRanges(writer, run.holes)
}

export function readRun(reader: ByteReader): RunFacts {
  const segment = reader.varint()
  const offset = reader.varint()
  const bytes = reader.varintAfter(offset) - offset
  const indexBytes = reader.varint()
  if (indexBytes >= bytes) throw new RangeError('a run has no data')
  const firstSeqNum = reader.varint()
  return {
    segment,
    offset,
    bytes,
    indexBytes,
    firstSeqNum,
    endSeqNum: reader.varintAfter(firstSeqNum),
    lastTimestamp: reader.varint(),
    blocks: reader.varint(),
    meteredBytes: reader.varint(),
    liveBytes: reader.varint(),
    minExpiry: reader.optional(),
    maxExpiry: reader.optional(),
    holes: readRanges(reader),
  }
}

export function writeRanges(writer: ByteWriter, ranges: SeqRanges): void {
  writer.varint(ranges.length)
  for (const { from, to } of ranges) {
    writer.varint(from)
    writer.varint(to)
  }
}

export function readRanges(reader: ByteReader): SeqRanges {
  const ranges = readList<SeqRange>(reader, () => ({ from: reader.varint(), to: reader.varint() }))
  return ranges.length === 0 ? NO_RANGES : ranges
}

/** Reads a count and that many items. */
export function readList<Item>(reader: ByteReader, readItem: () => Item): Item[] {
  const count = reader.varint()
  // Every item has at least one byte: a damaged count must not allocate memory.
  if (count > reader.left) throw new RangeError('truncated')
  const items: Item[] = []
  for (let i = 0; i < count; i++) items.push(readItem())
  // Pushing over-allocates: a list of one item, the common case, would keep room for seventeen.
  return items.slice()
}

/** The flags of a change of the write state. Persisted: keep stable. */
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
