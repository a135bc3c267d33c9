import { HEADER_METERED_BYTES, RECORD_METERED_BYTES } from '../model/record.ts'
import {
  BlockReader,
  notABlock,
  TAG_BODY,
  TAG_HEADER,
  TAG_NAME,
  TAG_SEQ_NUM,
  TAG_TIMESTAMP,
  TAG_VALUE,
} from './block-codec.ts'
import type { StoredBlock } from './contract.ts'

/** The position and size of a record in a block. */
export interface RecordSpan {
  readonly seqNum: number
  readonly timestamp: number
  readonly meteredBytes: number
  /**
   * Offset of the record and its tag in the block's data. The bytes between two such offsets are a block of
   * their own.
   */
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/**
 * Scans the records of a block without their contents, for reads that select records by position. As strict
 * as `decodeRecords`: throws `RangeError` if `data` is not a block.
 */
export function recordSpans(data: Uint8Array): RecordSpan[] {
  const reader = new BlockReader(data)
  const spans: RecordSpan[] = []
  while (reader.offset < data.length) {
    const start = reader.offset
    spans.push(readSpan(reader, start, reader.recordEnd()))
  }
  return spans
}

/**
 * The records of an unencrypted block. Throws `RangeError` if they do not match the metadata of the block.
 */
export function spansOf({ firstSeqNum, endSeqNum, data }: StoredBlock): RecordSpan[] {
  const spans = recordSpans(data)
  const isDense = spans.every(({ seqNum }, index) => seqNum === firstSeqNum + index)
  if (!isDense || spans.length !== endSeqNum - firstSeqNum)
    throw new RangeError('the records of a block do not match its metadata')
  return spans
}

/** Reads the record that begins at `start`; the reader has read its tag and length, and `end` is its end. */
export function readSpan(reader: BlockReader, start: number, end: number): RecordSpan {
  let seqNum = 0
  let timestamp = 0
  let headerBytes = 0
  let bodyBytes = 0
  while (reader.offset < end) {
    switch (reader.byte()) {
      case TAG_SEQ_NUM:
        seqNum = reader.varint()
        break
      case TAG_TIMESTAMP:
        timestamp = reader.varint()
        break
      case TAG_HEADER:
        headerBytes += HEADER_METERED_BYTES + skipHeader(reader)
        break
      case TAG_BODY:
        bodyBytes = reader.skipBytes()
        break
      default:
        throw notABlock('unexpected field of a record')
    }
  }
  reader.assertAt(end)
  return { seqNum, timestamp, meteredBytes: RECORD_METERED_BYTES + headerBytes + bodyBytes, start, end }
}

/** Returns the length of the name and the value. */
function skipHeader(reader: BlockReader): number {
  const end = reader.end()
  let nameBytes = 0
  let valueBytes = 0
  while (reader.offset < end) {
    const tag = reader.byte()
    if (tag === TAG_NAME) nameBytes = reader.skipBytes()
    else if (tag === TAG_VALUE) valueBytes = reader.skipBytes()
    else throw notABlock('unexpected field of a header')
  }
  reader.assertAt(end)
  return nameBytes + valueBytes
}

/** The block of consecutive records in `data`, of which it has a view. */
export function blockOf(
  data: Uint8Array,
  spans: readonly RecordSpan[],
  expiresAt: number | null,
): StoredBlock {
  const [first, last] = [spans[0]!, spans.at(-1)!]
  return {
    firstSeqNum: first.seqNum,
    endSeqNum: last.seqNum + 1,
    firstTimestamp: first.timestamp,
    lastTimestamp: last.timestamp,
    meteredBytes: spans.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    expiresAt,
    data: data.subarray(first.start, last.end),
  }
}
