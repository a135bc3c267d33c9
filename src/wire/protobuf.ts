import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { AppendBatch, AppendConditions, AppendInput, RecordInput } from '../model/append-input.ts'
import { concatBytes, textOf } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX, INTEGER_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import { STREAM_START, type StreamTail } from '../model/position.ts'
import { type Header, NO_HEADERS, type SequencedRecord } from '../model/record.ts'
import { assertInteger } from '../model/validation.ts'
import {
  encodeMessage,
  exactRecord,
  FieldReader,
  type RecordFields,
  readRecord,
  SEQUENCED_RECORD,
  TAG_RECORD,
} from '../storage/block-codec.ts'
import type { ReadBatch, ReceivedBatch } from '../storage/record-batch.ts'
import { Malformed } from './json.ts'
import { tooManyRecords } from './json-records.ts'

/**
 * The messages of the protocol (docs/protocol.md "Protobuf messages"), around the records that
 * `storage/block-codec.ts` reads and writes. Not by generated code, which describes itself at run time: that
 * would make the client for pages a third larger. `test/wire/protobuf.test.ts` compares the two.
 */

const APPEND_RECORD: RecordFields = {
  seqNum: -1,
  timestamp: 1 << 3,
  header: (2 << 3) | 2,
  body: (3 << 3) | 2,
  last: 3,
  hasZero: true,
}

const TAG_MATCH_SEQ_NUM = 2 << 3
const TAG_FENCING_TOKEN = (3 << 3) | 2
const APPEND_INPUT_LAST = 3
const TAG_TAIL = (2 << 3) | 2
const READ_BATCH_LAST = 2

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
  let largestTimestamp = 0
  let matchSeqNum: number | undefined
  let fencingToken: string | undefined
  const keep = (_: unknown, timestamp: number | undefined, headers: readonly Header[], body: Uint8Array) => {
    if (timestamp !== undefined && timestamp > largestTimestamp) largestTimestamp = timestamp
    if (inputs.length > BATCH_RECORDS_MAX) return
    inputs.push({ timestamp, headers: headers === NO_HEADERS ? undefined : headers, body })
  }
  try {
    reader.visit(bytes.length, APPEND_INPUT_LAST, (tag) => {
      if (tag === TAG_RECORD) readRecord(reader, reader.fieldEnd(), APPEND_RECORD, keep)
      else if (tag === TAG_MATCH_SEQ_NUM) matchSeqNum = reader.varint()
      else if (tag === TAG_FENCING_TOKEN) fencingToken = reader.text()
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

/** Decodes a `ReadBatch` message with views of `bytes`. Skips unknown fields. Throws {@link Malformed}. */
export function decodeReadBatch(bytes: Uint8Array): ReceivedBatch {
  return received(bytes, (reader) => {
    const records: SequencedRecord[] = []
    let tail: StreamTail | undefined
    reader.visit(bytes.length, READ_BATCH_LAST, (tag) => {
      if (tag === TAG_RECORD) {
        if (records.length === READ_RECORDS_MAX) throw tooManyRecords()
        records.push(readRecord(reader, reader.fieldEnd(), SEQUENCED_RECORD, exactRecord))
      } else if (tag === TAG_TAIL) tail = reader.position()
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
    reader.visit(bytes.length, positions.length, (tag) => {
      const index = [1, 2, 3].findIndex((number) => tag === ((number << 3) | WireType.LengthDelimited))
      if (index !== -1) positions[index] = reader.position()
      return index !== -1
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

/** A reader that skips unknown fields, but not known ones of another wire type. */
class MessageReader extends FieldReader {
  /** Visits the fields up to `end`. `visit` returns false for one that it does not know. */
  visit(end: number, last: number, visit: (tag: number) => boolean): void {
    while (this.offset < end) {
      const tag = this.tag()
      if (!visit(tag)) this.skip(tag, last)
    }
    this.assertAt(end)
  }

  override skip(tag: number, last: number): void {
    const number = tag >>> 3
    if (number <= last) throw new RangeError('a field has the wrong wire type')
    const reader = new BinaryReader(this.data)
    reader.pos = this.offset
    reader.skip((tag & 7) as WireType, number)
    this.offset = reader.pos
  }

  text(): string {
    const text = textOf(this.bytes())
    if (text === undefined) throw new RangeError('a text is not UTF-8')
    return text
  }

  position(): StreamTail {
    let seqNum = 0
    let timestamp = 0
    let closed = 0
    this.visit(this.fieldEnd(), 2, (tag) => {
      if (tag === 1 << 3) seqNum = this.varint()
      else if (tag === 2 << 3) timestamp = this.varint()
      else if (tag === 15 << 3) closed = this.varint()
      else return false
      return true
    })
    if (seqNum > INTEGER_MAX || timestamp > INTEGER_MAX) throw new RangeError('a number beyond 2^53 - 1')
    return closed === 0 ? { seqNum, timestamp } : { seqNum, timestamp, closed: true }
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

/**
 * Encodes an `AppendInput` message: the records of a batch, under these conditions.
 *
 * @param allocate Returns the memory for the message, of exactly this length.
 */
export function encodeAppendInput(
  { records }: Pick<AppendBatch, 'records'>,
  { matchSeqNum, fencingToken }: AppendConditions,
  allocate?: (length: number) => Uint8Array,
): Uint8Array {
  const conditions = new BinaryWriter()
  if (matchSeqNum !== undefined) conditions.tag(2, WireType.Varint).uint64(matchSeqNum)
  if (fencingToken !== undefined) conditions.tag(3, WireType.LengthDelimited).string(fencingToken)
  return encodeMessage(records, APPEND_RECORD, conditions.finish(), allocate)
}
