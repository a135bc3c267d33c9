import type { Header, SequencedRecord } from '../model/record.ts'
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

/**
 * Records as bytes: the protobuf encoding of the wire's `ReadBatch` message with nothing but `records` (wire-behaviour.md 6.6),
 * field numbers 1 `seq_num`, 2 `timestamp`, 3 `headers` (1 `name`, 2 `value`), 4 `body`; defaults are left out. Persisted: keep
 * stable. Two properties make it worth writing by hand:
 *
 * - what is stored is what binary readers are sent: no decoding in between;
 * - the concatenation of two blocks is the block of their records, so small appends are merged by copying bytes.
 *
 * `test/wire/block-oracle.test.ts` holds it to the generated code of `@bufbuild/protobuf`, `bench/block-codec.ts` says what it gains.
 */
export function encodeRecords(records: readonly SequencedRecord[]): Uint8Array {
  let length = 0
  const sizes = new Array<number>(records.length)
  for (let i = 0; i < records.length; i++) {
    const size = recordSize(records[i]!)
    sizes[i] = size
    length += 1 + varintSize(size) + size
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (let i = 0; i < records.length; i++) {
    bytes[offset++] = TAG_RECORD
    offset = writeVarint(bytes, offset, sizes[i]!)
    offset = writeRecord(bytes, offset, records[i]!)
  }
  return bytes
}

/** The records of a block. Their byte arrays are views of `data`. Throws `RangeError` when `data` is no block. */
export function decodeRecords(data: Uint8Array): SequencedRecord[] {
  const reader = new BlockReader(data)
  const records: SequencedRecord[] = []
  while (reader.offset < data.length) {
    if (reader.byte() !== TAG_RECORD) throw new RangeError('not a block: unexpected field')
    const end = reader.end()
    records.push(readRecord(reader, end))
  }
  return records
}

const NO_BYTES: Uint8Array = new Uint8Array(0)
/** Of most records, and shared by them. */
const NO_HEADERS: readonly Header[] = Object.freeze([])

function recordSize(record: SequencedRecord): number {
  let size = 0
  if (record.seqNum !== 0) size += 1 + varintSize(record.seqNum)
  if (record.timestamp !== 0) size += 1 + varintSize(record.timestamp)
  for (const header of record.headers) {
    const inner = headerSize(header)
    size += 1 + varintSize(inner) + inner
  }
  return size + bytesSize(record.body)
}

function headerSize([name, value]: Header): number {
  return bytesSize(name) + bytesSize(value)
}

function bytesSize(bytes: Uint8Array): number {
  return bytes.length === 0 ? 0 : 1 + varintSize(bytes.length) + bytes.length
}

function varintSize(value: number): number {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  if (value < 0x20_0000) return 3
  if (value < 0x1000_0000) return 4
  let size = 4
  for (let rest = value / 0x1000_0000; rest >= 1; rest /= 128) size++
  return size
}

function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let offset = start
  let rest = value
  while (rest >= 0x1000_0000) {
    bytes[offset++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  while (rest >= 0x80) {
    bytes[offset++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[offset++] = rest
  return offset
}

function writeRecord(bytes: Uint8Array, start: number, record: SequencedRecord): number {
  let offset = start
  if (record.seqNum !== 0) {
    bytes[offset++] = TAG_SEQ_NUM
    offset = writeVarint(bytes, offset, record.seqNum)
  }
  if (record.timestamp !== 0) {
    bytes[offset++] = TAG_TIMESTAMP
    offset = writeVarint(bytes, offset, record.timestamp)
  }
  for (const header of record.headers) {
    bytes[offset++] = TAG_HEADER
    offset = writeVarint(bytes, offset, headerSize(header))
    offset = writeBytes(bytes, offset, TAG_NAME, header[0])
    offset = writeBytes(bytes, offset, TAG_VALUE, header[1])
  }
  return writeBytes(bytes, offset, TAG_BODY, record.body)
}

function writeBytes(bytes: Uint8Array, start: number, tag: number, value: Uint8Array): number {
  if (value.length === 0) return start
  bytes[start] = tag
  const offset = writeVarint(bytes, start + 1, value.length)
  bytes.set(value, offset)
  return offset + value.length
}

function readRecord(reader: BlockReader, end: number): SequencedRecord {
  let seqNum = 0
  let timestamp = 0
  let headers: Header[] | undefined
  let body: Uint8Array = NO_BYTES
  while (reader.offset < end) {
    switch (reader.byte()) {
      case TAG_SEQ_NUM:
        seqNum = reader.varint()
        break
      case TAG_TIMESTAMP:
        timestamp = reader.varint()
        break
      case TAG_HEADER:
        headers ??= []
        headers.push(readHeader(reader))
        break
      case TAG_BODY:
        body = reader.bytes()
        break
      default:
        throw new RangeError('not a block: unexpected field of a record')
    }
  }
  if (reader.offset !== end) throw new RangeError('not a block: a record overruns its length')
  return { seqNum, timestamp, headers: headers ?? NO_HEADERS, body }
}

function readHeader(reader: BlockReader): Header {
  const end = reader.end()
  let name: Uint8Array = NO_BYTES
  let value: Uint8Array = NO_BYTES
  while (reader.offset < end) {
    const tag = reader.byte()
    if (tag === TAG_NAME) name = reader.bytes()
    else if (tag === TAG_VALUE) value = reader.bytes()
    else throw new RangeError('not a block: unexpected field of a header')
  }
  if (reader.offset !== end) throw new RangeError('not a block: a header overruns its length')
  return [name, value]
}
