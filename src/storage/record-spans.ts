import { HEADER_METERED_BYTES, RECORD_METERED_BYTES } from '../model/metering.ts'
import {
  BlockReader,
  TAG_BODY,
  TAG_HEADER,
  TAG_NAME,
  TAG_RECORD,
  TAG_SEQ_NUM,
  TAG_TIMESTAMP,
  TAG_VALUE,
} from './block-reader.ts'
import type { StoredBlock } from './contract.ts'

/** A record of a block: what decides whether a read gets it, and where its bytes are. */
export interface RecordSpan {
  readonly seqNum: number
  readonly timestamp: number
  readonly meteredBytes: number
  /** Of the record within the block's data, with its tag: what lies between two spans is a block of its own. */
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/**
 * The records of a block without their contents: for a read that wants some of them, and knows which by their places. As strict as
 * `decodeRecords`: throws `RangeError` when `data` is no block.
 */
export function recordSpans(data: Uint8Array): RecordSpan[] {
  const reader = new BlockReader(data)
  const spans: RecordSpan[] = []
  while (reader.offset < data.length) {
    const start = reader.offset
    if (reader.byte() !== TAG_RECORD) throw new RangeError('not a block: unexpected field')
    spans.push(readSpan(reader, start, reader.end()))
  }
  return spans
}

/** The records of a plain block. Throws `RangeError` when they are not those that the block says it has. */
export function spansOf({ firstSeqNum, endSeqNum, data }: StoredBlock): RecordSpan[] {
  const spans = recordSpans(data)
  const isDense = spans.every(({ seqNum }, index) => seqNum === firstSeqNum + index)
  if (!isDense || spans.length !== endSeqNum - firstSeqNum) throw new RangeError('other records than it says')
  return spans
}

function readSpan(reader: BlockReader, start: number, end: number): RecordSpan {
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
        throw new RangeError('not a block: unexpected field of a record')
    }
  }
  if (reader.offset !== end) throw new RangeError('not a block: a record overruns its length')
  return { seqNum, timestamp, meteredBytes: RECORD_METERED_BYTES + headerBytes + bodyBytes, start, end }
}

/** Returns the length of name and value. */
function skipHeader(reader: BlockReader): number {
  const end = reader.end()
  let nameBytes = 0
  let valueBytes = 0
  while (reader.offset < end) {
    const tag = reader.byte()
    if (tag === TAG_NAME) nameBytes = reader.skipBytes()
    else if (tag === TAG_VALUE) valueBytes = reader.skipBytes()
    else throw new RangeError('not a block: unexpected field of a header')
  }
  if (reader.offset !== end) throw new RangeError('not a block: a header overruns its length')
  return nameBytes + valueBytes
}
