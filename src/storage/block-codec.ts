import { EMPTY_BYTES } from '../model/bytes.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { type Header, NO_HEADERS, type SequencedRecord, sequencedRecord } from '../model/record.ts'

/**
 * Records in protobuf (docs/protocol.md "Protobuf messages"), read and written by hand: the code that is
 * generated of `proto` takes 4 to 5 times as long. `test/campaigns/fuzz/records.test.ts` compares the two.
 * `wire/protobuf.ts` has the messages around them.
 */

export const TAG_RECORD = (1 << 3) | 2

export interface RecordFields {
  /** -1 if it has no sequence number. */
  readonly seqNum: number
  readonly timestamp: number
  readonly header: number
  readonly body: number
  /** The largest number of a field. */
  readonly last: number
  /** Whether 0 is written. Otherwise it is the same as no number. */
  readonly hasZero: boolean
}

export const SEQUENCED_RECORD: RecordFields = {
  seqNum: 1 << 3,
  timestamp: 2 << 3,
  header: (3 << 3) | 2,
  body: (4 << 3) | 2,
  last: 4,
  hasZero: false,
}

const TAG_NAME = (1 << 3) | 2
const TAG_VALUE = (2 << 3) | 2
const HEADER_LAST = 2

/**
 * Encodes records as a block: a `ReadBatch` message with only `records`. Persisted: keep stable. It has two
 * properties:
 * - binary readers receive the stored bytes without decoding;
 * - the concatenation of two blocks is the block of their records, so small appends are merged by copying
 *   bytes.
 */
export function encodeRecords(records: readonly SequencedRecord[]): Uint8Array {
  return encodeMessage(records, SEQUENCED_RECORD)
}

/** Decodes the records of a block, with views of `data`. Throws `RangeError` if `data` is not a block. */
export function decodeRecords(data: Uint8Array): SequencedRecord[] {
  const reader = new FieldReader(data)
  const records: SequencedRecord[] = []
  while (reader.offset < data.length) records.push(readBlockRecord(reader))
  return records
}

/** Reads a record of a block, with its tag. Throws `RangeError`. */
export function readBlockRecord(reader: FieldReader): SequencedRecord {
  return readRecord(reader, reader.recordEnd(), SEQUENCED_RECORD, exactRecord)
}

/** Makes a record of its fields. Throws `RangeError` for a number that JavaScript cannot represent. */
export const exactRecord: RecordMaker<SequencedRecord> = (seqNum = 0, timestamp = 0, headers, body) => {
  if (seqNum > INTEGER_MAX || timestamp > INTEGER_MAX) throw malformed('number beyond 2^53 - 1')
  return sequencedRecord(seqNum, timestamp, headers, body)
}

interface EncodableRecord {
  readonly seqNum?: number
  readonly timestamp: number | undefined
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/**
 * Encodes a message with records.
 *
 * @param others The other fields of the message.
 * @param allocate Returns the memory for the message, of exactly this length.
 */
export function encodeMessage(
  records: readonly EncodableRecord[],
  fields: RecordFields,
  others: Uint8Array = EMPTY_BYTES,
  allocate: (length: number) => Uint8Array = (length) => new Uint8Array(length),
): Uint8Array {
  let length = others.length
  const sizes = new Array<number>(records.length)
  for (let i = 0; i < records.length; i++) {
    const size = recordSize(records[i]!, fields)
    sizes[i] = size
    length += 1 + varintSize(size) + size
  }
  const bytes = allocate(length)
  let offset = 0
  for (let i = 0; i < records.length; i++) {
    offset = writeNumber(bytes, offset, TAG_RECORD, sizes[i]!)
    offset = writeRecord(bytes, offset, records[i]!, fields)
  }
  bytes.set(others, offset)
  return bytes
}

function recordSize(record: EncodableRecord, { hasZero }: RecordFields): number {
  const { seqNum, timestamp, headers, body } = record
  let size = bytesSize(body)
  if (seqNum || (hasZero && seqNum === 0)) size += 1 + varintSize(seqNum)
  if (timestamp || (hasZero && timestamp === 0)) size += 1 + varintSize(timestamp)
  // Iterating over the empty headers of most records would take longer than the rest does.
  if (headers.length > 0) size += headersSize(headers)
  return size
}

function headersSize(headers: readonly Header[]): number {
  let size = 0
  for (const header of headers) {
    const inner = headerSize(header)
    size += 1 + varintSize(inner) + inner
  }
  return size
}

function headerSize([name, value]: Header): number {
  return bytesSize(name) + bytesSize(value)
}

function bytesSize({ length }: Uint8Array): number {
  return length === 0 ? 0 : 1 + varintSize(length) + length
}

/** Smaller values take at most four bytes, and 32-bit operations suffice. */
const LOW_BITS = 0x1000_0000

/** The length of a number of up to 2^53 - 1 as a protobuf varint. */
function varintSize(value: number): number {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  if (value < 0x20_0000) return 3
  if (value < LOW_BITS) return 4
  return 4 + varintSize(Math.floor(value / LOW_BITS))
}

function writeRecord(
  bytes: Uint8Array,
  start: number,
  { seqNum, timestamp, headers, body }: EncodableRecord,
  fields: RecordFields,
): number {
  const { hasZero } = fields
  let offset = start
  if (seqNum || (hasZero && seqNum === 0)) offset = writeNumber(bytes, offset, fields.seqNum, seqNum)
  if (timestamp || (hasZero && timestamp === 0)) {
    offset = writeNumber(bytes, offset, fields.timestamp, timestamp)
  }
  if (headers.length > 0) offset = writeHeaders(bytes, offset, headers, fields.header)
  return writeBytes(bytes, offset, fields.body, body)
}

function writeHeaders(bytes: Uint8Array, start: number, headers: readonly Header[], tag: number): number {
  let offset = start
  for (const header of headers) {
    offset = writeNumber(bytes, offset, tag, headerSize(header))
    offset = writeBytes(bytes, offset, TAG_NAME, header[0])
    offset = writeBytes(bytes, offset, TAG_VALUE, header[1])
  }
  return offset
}

function writeBytes(bytes: Uint8Array, start: number, tag: number, value: Uint8Array): number {
  if (value.length === 0) return start
  const offset = writeNumber(bytes, start, tag, value.length)
  bytes.set(value, offset)
  return offset + value.length
}

/** Writes a tag, and a number of up to 2^53 - 1 as a varint. Returns their end. */
function writeNumber(bytes: Uint8Array, start: number, tag: number, value: number): number {
  let offset = start
  bytes[offset++] = tag
  let rest = value
  if (value >= LOW_BITS) {
    const high = Math.floor(value / LOW_BITS)
    const low = value - high * LOW_BITS
    bytes[offset++] = (low & 0x7f) | 0x80
    bytes[offset++] = ((low >>> 7) & 0x7f) | 0x80
    bytes[offset++] = ((low >>> 14) & 0x7f) | 0x80
    bytes[offset++] = (low >>> 21) | 0x80
    rest = high
  }
  while (rest >= 0x80) {
    bytes[offset++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[offset++] = rest
  return offset
}

/** Makes a record of its fields. A number beyond 2^53 - 1 is `Infinity`, one that is absent undefined. */
type RecordMaker<Made> = (
  seqNum: number | undefined,
  timestamp: number | undefined,
  headers: readonly Header[],
  body: Uint8Array,
) => Made

/** Reads a record that ends at `end`, with views of its bytes. */
export function readRecord<Made>(
  reader: FieldReader,
  end: number,
  fields: RecordFields,
  make: RecordMaker<Made>,
): Made {
  let seqNum: number | undefined
  let timestamp: number | undefined
  let headers: Header[] | undefined
  let body: Uint8Array | undefined
  while (reader.offset < end) {
    const tag = reader.tag()
    if (tag === fields.body) body = reader.bytes()
    else if (tag === fields.timestamp) timestamp = reader.varint()
    else if (tag === fields.seqNum) seqNum = reader.varint()
    else if (tag === fields.header) {
      headers ??= []
      headers.push(readHeader(reader))
    } else reader.skip(tag, fields.last)
  }
  reader.assertAt(end)
  return make(seqNum, timestamp, headers ?? NO_HEADERS, body ?? reader.noBytes())
}

function readHeader(reader: FieldReader): Header {
  const end = reader.fieldEnd()
  let name: Uint8Array | undefined
  let value: Uint8Array | undefined
  while (reader.offset < end) {
    const tag = reader.tag()
    if (tag === TAG_NAME) name = reader.bytes()
    else if (tag === TAG_VALUE) value = reader.bytes()
    else reader.skip(tag, HEADER_LAST)
  }
  reader.assertAt(end)
  return [name ?? reader.noBytes(), value ?? reader.noBytes()]
}

/** Reads the fields of a message in order. Throws `RangeError` if they are truncated. */
export class FieldReader {
  offset = 0
  readonly data: Uint8Array

  constructor(data: Uint8Array) {
    this.data = data
  }

  /** An empty view of the message: a caller may transfer its memory, so not all messages share it. */
  noBytes(): Uint8Array {
    return this.data.subarray(0, 0)
  }

  /** Reads the number of a field and its wire type. */
  tag(): number {
    const tag = this.varint()
    if (tag > 0xffff_ffff) throw malformed('number of a field')
    return tag
  }

  /** Reads a number of up to 2^64 - 1: exact up to 2^53 - 1, `Infinity` beyond that. */
  varint(): number {
    let value = 0
    let scale = 1
    for (let length = 1; length <= 10; length++) {
      const byte = this.data[this.offset++]
      if (byte === undefined) throw malformed('truncated')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value > INTEGER_MAX ? Number.POSITIVE_INFINITY : value
      scale *= 128
    }
    throw malformed('number without an end')
  }

  /** Reads a length. Returns the offset of the end of the field. */
  fieldEnd(): number {
    const length = this.varint()
    const end = length + this.offset
    if (end > this.data.length) throw malformed('truncated')
    return end
  }

  /** Reads the tag and the length of a record. Returns the offset of its end. */
  recordEnd(): number {
    if (this.tag() !== TAG_RECORD) throw malformed('unexpected field')
    return this.fieldEnd()
  }

  /** Throws if the fields of a record or header overran its end. */
  assertAt(end: number): void {
    if (this.offset !== end) throw malformed('a field overruns its message')
  }

  /** Reads a length and that many bytes: a view. */
  bytes(): Uint8Array {
    const end = this.fieldEnd()
    const { buffer, byteOffset } = this.data
    // Not `subarray`, which takes four times as long, and makes a Node `Buffer` of one.
    const bytes = new Uint8Array(buffer, byteOffset + this.offset, end - this.offset)
    this.offset = end
    return bytes
  }

  /** Skips a field that the reader does not know. A block has none. */
  skip(_tag: number, _last: number): void {
    throw malformed('unexpected field')
  }
}

function malformed(problem: string): RangeError {
  return new RangeError(`not a message of records: ${problem}`)
}
