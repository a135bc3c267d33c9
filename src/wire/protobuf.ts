import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { AppendBatch, AppendConditions, AppendInput, RecordInput } from '../model/append-input.ts'
import { concatBytes, EMPTY_BYTES } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX, INTEGER_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import { STREAM_START, type StreamTail } from '../model/position.ts'
import type { AppendRecord, Header, SequencedRecord } from '../model/record.ts'
import { assertInteger } from '../model/validation.ts'
import { TAG_NAME, TAG_RECORD, TAG_VALUE, varintSize, writeVarint } from '../storage/block-codec.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { Malformed } from './json.ts'
import { type ReceivedBatch, receivedRecord, tooManyRecords } from './received-batch.ts'

/**
 * The messages of the protocol (docs/protocol.md "Protobuf messages"), read and written field by field: the
 * generated code takes four times as long for records, and would be a third of the client in a page.
 * `test/wire/protobuf.test.ts` compares the two.
 */

/**
 * Decodes an `AppendInput` message. Byte arrays are views of `bytes`. Throws a `HeadwaterError` of the given
 * code if the message is malformed, and 422 `invalid` if a number exceeds 2^53 - 1.
 *
 * A record can be as short as two bytes, so a frame could hold a million: all are checked, but only one more
 * than the limit of a batch is kept, for `appendBatch` to reject.
 */
export function decodeAppendInput(bytes: Uint8Array, code: ErrorCode): AppendInput {
  const reader = new MessageReader(bytes)
  const inputs: RecordInput[] = []
  let matchSeqNum: number | undefined
  let fencingToken: string | undefined
  let largestTimestamp = 0
  try {
    eachField(reader, reader.len, (field, type) => {
      if (field === 1) {
        const { timestamp, headers, body } = readRecord(
          reader,
          endOf(reader, type, reader.len),
          APPEND_RECORD,
        )
        largestTimestamp = Math.max(largestTimestamp, timestamp ?? 0)
        if (inputs.length <= BATCH_RECORDS_MAX) inputs.push({ timestamp, headers, body })
      } else if (field === 2) matchSeqNum = integerOf(reader, type)
      else if (field === 3) fencingToken = textOf(reader, type)
      else return false
      return true
    })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new HeadwaterError(code, `invalid AppendInput message: ${reason}`, { cause })
  }
  assertInteger(largestTimestamp, 'timestamp')
  if (matchSeqNum !== undefined) assertInteger(matchSeqNum, 'match_seq_num')
  return { inputs, conditions: { matchSeqNum, fencingToken } }
}

/**
 * Decodes a `ReadBatch` message with views of `bytes`. Unknown fields are skipped. Throws {@link Malformed}.
 */
export function decodeReadBatch(bytes: Uint8Array): ReceivedBatch {
  return received(bytes, (reader) => {
    const records: SequencedRecord[] = []
    let tail: StreamTail | undefined
    eachField(reader, reader.len, (field, type) => {
      if (field === 1) {
        const record = readRecord(reader, endOf(reader, type, reader.len), SEQUENCED_RECORD)
        const { seqNum = 0, timestamp = 0, headers = NO_HEADERS, body } = record
        if (records.length === READ_RECORDS_MAX) throw tooManyRecords()
        records.push(receivedRecord(exact(seqNum), exact(timestamp), headers, body))
      } else if (field === 2) tail = readPosition(reader, type)
      else return false
      return true
    })
    return { records, tail }
  })
}

/** Decodes an `AppendAck` message. Throws {@link Malformed}. */
export function decodeAppendAck(bytes: Uint8Array): AppendAck {
  return received(bytes, (reader) => {
    const positions = [STREAM_START, STREAM_START, STREAM_START]
    eachField(reader, reader.len, (field, type) => {
      if (field < 1 || field > positions.length) return false
      positions[field - 1] = readPosition(reader, type)
      return true
    })
    const [start, end, tail] = positions as [StreamTail, StreamTail, StreamTail]
    return { start, end, tail }
  })
}

function received<Message>(bytes: Uint8Array, read: (reader: MessageReader) => Message): Message {
  try {
    return read(new MessageReader(bytes))
  } catch (error) {
    throw error instanceof Malformed
      ? error
      : new Malformed('a protobuf message is malformed', undefined, error)
  }
}

/** Visits the fields of a message up to `end`. `visit` returns false for a field that it does not know. */
function eachField(
  reader: MessageReader,
  end: number,
  visit: (field: number, type: WireType) => boolean,
): void {
  while (reader.pos < end) {
    const tag = reader.combinedTag()
    if (!visit(tag >>> 3, tag & 7)) reader.skip(tag & 7, tag >>> 3)
  }
  if (reader.pos !== end) throw new RangeError('a field overruns its message')
}

function readPosition(reader: MessageReader, wireType: WireType): StreamTail {
  let seqNum = 0
  let timestamp = 0
  let closed = 0
  eachField(reader, endOf(reader, wireType, reader.len), (field, type) => {
    if (field === 1) seqNum = exact(integerOf(reader, type))
    else if (field === 2) timestamp = exact(integerOf(reader, type))
    else if (field === 15) closed = integerOf(reader, type)
    else return false
    return true
  })
  return closed === 0 ? { seqNum, timestamp } : { seqNum, timestamp, closed: true }
}

/** Throws for a number that {@link MessageReader.integer} could not represent. */
function exact(number: number): number {
  if (number > INTEGER_MAX) throw new RangeError('a number beyond 2^53 - 1')
  return number
}

/** The numbers of the fields of a message that is a record; 0 for a field that it does not have. */
interface RecordFields {
  readonly seqNum: number
  readonly timestamp: number
  readonly headers: number
  readonly body: number
}

const APPEND_RECORD: RecordFields = { seqNum: 0, timestamp: 1, headers: 2, body: 3 }
const SEQUENCED_RECORD: RecordFields = { seqNum: 1, timestamp: 2, headers: 3, body: 4 }

interface DecodedRecord {
  readonly seqNum: number | undefined
  readonly timestamp: number | undefined
  readonly headers: readonly Header[] | undefined
  readonly body: Uint8Array
}

const NO_HEADERS: readonly Header[] = []
function readRecord(reader: MessageReader, end: number, fields: RecordFields): DecodedRecord {
  let seqNum: number | undefined
  let timestamp: number | undefined
  let headers: Header[] | undefined
  let body: Uint8Array = EMPTY_BYTES
  while (reader.pos < end) {
    const tag = reader.combinedTag()
    const field = tag >>> 3
    const type = tag & 7
    if (field === fields.body) body = bytesOf(reader, type)
    else if (field === fields.timestamp) timestamp = integerOf(reader, type)
    else if (field === fields.seqNum) seqNum = integerOf(reader, type)
    else if (field === fields.headers) {
      headers ??= []
      headers.push(readHeader(reader, endOf(reader, type, end)))
    } else reader.skip(type, field)
  }
  if (reader.pos !== end) throw new RangeError('a record overruns its length')
  return { seqNum, timestamp, headers, body }
}

function readHeader(reader: MessageReader, end: number): Header {
  let name: Uint8Array = EMPTY_BYTES
  let value: Uint8Array = EMPTY_BYTES
  while (reader.pos < end) {
    const tag = reader.combinedTag()
    const field = tag >>> 3
    const type = tag & 7
    if (field === 1) name = bytesOf(reader, type)
    else if (field === 2) value = bytesOf(reader, type)
    else reader.skip(type, field)
  }
  if (reader.pos !== end) throw new RangeError('a header overruns its length')
  return [name, value]
}

/** Reads the length of a nested message and returns the offset of its end. */
function endOf(reader: BinaryReader, type: WireType, limit: number): number {
  expectType(type, WireType.LengthDelimited)
  const end = reader.uint32() + reader.pos
  if (end > limit) throw new RangeError('a nested message is cut short')
  return end
}

function bytesOf(reader: BinaryReader, type: WireType): Uint8Array {
  expectType(type, WireType.LengthDelimited)
  return reader.bytes()
}

function integerOf(reader: MessageReader, type: WireType): number {
  expectType(type, WireType.Varint)
  return reader.integer()
}

function textOf(reader: MessageReader, type: WireType): string {
  expectType(type, WireType.LengthDelimited)
  return reader.string(true)
}

function expectType(type: WireType, expected: WireType): void {
  if (type !== expected) throw new RangeError('a field has the wrong wire type')
}

/** Allocates less than its base class for what every record has. */
class MessageReader extends BinaryReader {
  readonly #data: Uint8Array

  constructor(bytes: Uint8Array) {
    // Views of a Node `Buffer` would be `Buffer`s, whose `slice` does not copy.
    const data = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    super(data)
    this.#data = data
  }

  /** Reads a tag as one number. `tag` returns an array. */
  combinedTag(): number {
    const start = this.pos
    const tag = this.uint32()
    const isUsual = this.pos === start + 1 && tag >= 1 << 3 && (tag & 7) <= WireType.Bit32
    if (isUsual) return tag
    this.pos = start
    const [field, type] = this.tag()
    return ((field << 3) | type) >>> 0
  }

  override bytes(): Uint8Array<ArrayBuffer> {
    const length = this.uint32()
    const start = this.pos
    this.pos += length
    if (this.pos > this.len) throw new RangeError('premature EOF')
    const { buffer, byteOffset } = this.#data
    // Not `subarray`, which takes four times as long.
    return new Uint8Array(buffer as ArrayBuffer, byteOffset + start, length)
  }

  /** Reads a number of up to 2^64 - 1: exact up to 2^53 - 1, `Infinity` beyond that. */
  integer(): number {
    let value = 0
    let scale = 1
    for (let length = 1; length <= 10; length++) {
      if (this.pos >= this.len) throw new RangeError('premature EOF')
      const byte = this.#data[this.pos++]!
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value > INTEGER_MAX ? Number.POSITIVE_INFINITY : value
      scale *= 128
    }
    throw new RangeError('invalid varint')
  }
}

/** Encodes an `AppendAck` message. All three positions are present, even if every number in them is 0. */
export function encodeAppendAck({ start, end, tail }: AppendAck): Uint8Array {
  const writer = new BinaryWriter()
  writePosition(writer, 1, start)
  writePosition(writer, 2, end)
  writePosition(writer, 3, tail)
  return writer.finish()
}

function writePosition(writer: BinaryWriter, field: number, { seqNum, timestamp, closed }: StreamTail): void {
  writer.tag(field, WireType.LengthDelimited).fork()
  if (seqNum !== 0) writer.tag(1, WireType.Varint).uint64(seqNum)
  if (timestamp !== 0) writer.tag(2, WireType.Varint).uint64(timestamp)
  if (closed) writer.tag(15, WireType.Varint).bool(true)
  writer.join()
}

/**
 * Encodes a batch as a `ReadBatch` message: its block unchanged, followed by the tail. A batch without a tail
 * shares memory with the block and must not be written to.
 */
export function encodeReadBatch(batch: ReadBatch): Uint8Array {
  return batch.tail === undefined ? batch.data : concatBytes([batch.data, encodeHeartbeat(batch.tail)])
}

/** Encodes a heartbeat: a `ReadBatch` message with a tail and no records. */
export function encodeHeartbeat(tail: StreamTail): Uint8Array {
  const writer = new BinaryWriter()
  writePosition(writer, 2, tail)
  return writer.finish()
}

/** Tags of the fields of `AppendRecord`. */
const TAG_TIMESTAMP = 1 << 3
const TAG_HEADER = (2 << 3) | 2
const TAG_BODY = (3 << 3) | 2

/**
 * Encodes an `AppendInput` message: the records of a batch, under these conditions.
 *
 * @param allocate Returns the memory for the message, of exactly this length.
 */
export function encodeAppendInput(
  { records }: Pick<AppendBatch, 'records'>,
  { matchSeqNum, fencingToken }: AppendConditions,
  allocate: (length: number) => Uint8Array = (length) => new Uint8Array(length),
): Uint8Array {
  const conditions = new BinaryWriter()
  if (matchSeqNum !== undefined) conditions.tag(2, WireType.Varint).uint64(matchSeqNum)
  if (fencingToken !== undefined) conditions.tag(3, WireType.LengthDelimited).string(fencingToken)
  const others = conditions.finish()
  const sizes = new Array<number>(records.length)
  let length = others.length
  for (let i = 0; i < records.length; i++) {
    const size = recordSize(records[i]!)
    sizes[i] = size
    length += 1 + varintSize(size) + size
  }
  const writer = new Writer(allocate(length))
  for (let i = 0; i < records.length; i++) {
    writer.varint(TAG_RECORD, sizes[i]!)
    writer.record(records[i]!)
  }
  writer.buffer.set(others, length - others.length)
  return writer.buffer
}

class Writer {
  readonly buffer: Uint8Array
  #end = 0

  constructor(buffer: Uint8Array) {
    this.buffer = buffer
  }

  record({ timestamp, headers, body }: AppendRecord): void {
    if (timestamp !== undefined) this.varint(TAG_TIMESTAMP, timestamp)
    if (headers.length > 0) this.#headers(headers)
    this.#bytesUnlessEmpty(TAG_BODY, body)
  }

  #headers(headers: readonly Header[]): void {
    for (const header of headers) {
      this.varint(TAG_HEADER, headerSize(header))
      this.#bytesUnlessEmpty(TAG_NAME, header[0])
      this.#bytesUnlessEmpty(TAG_VALUE, header[1])
    }
  }

  varint(tag: number, value: number): void {
    this.buffer[this.#end] = tag
    this.#end = writeVarint(this.buffer, this.#end + 1, value)
  }

  bytes(tag: number, value: Uint8Array): void {
    this.varint(tag, value.length)
    this.buffer.set(value, this.#end)
    this.#end += value.length
  }

  #bytesUnlessEmpty(tag: number, value: Uint8Array): void {
    if (value.length > 0) this.bytes(tag, value)
  }
}

function recordSize({ timestamp, headers, body }: AppendRecord): number {
  let size = timestamp === undefined ? 0 : 1 + varintSize(timestamp)
  // Iterating over the empty headers of most records would allocate more than the rest does.
  if (headers.length > 0) size += headersSize(headers)
  return size + sizeUnlessEmpty(body)
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
  return sizeUnlessEmpty(name) + sizeUnlessEmpty(value)
}

function sizeUnlessEmpty(bytes: Uint8Array): number {
  return bytes.length === 0 ? 0 : fieldSize(bytes)
}

function fieldSize({ length }: Uint8Array): number {
  return 1 + varintSize(length) + length
}
