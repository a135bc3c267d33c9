import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire'
import type { AppendBatch, AppendConditions, AppendInput, RecordInput } from '../model/append-input.ts'
import { concatBytes, EMPTY_BYTES } from '../model/bytes.ts'
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
import {
  AppendAckSchema,
  AppendInputSchema,
  ReadBatchSchema,
  type StreamPosition,
  type StreamPositionSchema,
} from './gen/records_pb.ts'
import { Malformed } from './json.ts'
import { tooManyRecords } from './json-records.ts'

/**
 * The messages of the protocol (docs/protocol.md "Protobuf messages"). Records are read and written by
 * `storage/block-codec.ts`, everything around them by generated code, which takes 4 to 5 times as long.
 */

const APPEND_RECORD: RecordFields = {
  seqNum: -1,
  timestamp: 1 << 3,
  header: (2 << 3) | 2,
  body: (3 << 3) | 2,
  last: 3,
  hasZero: true,
}

/** The tags of the fields of messages that are no records, and the largest number of a field. */
const APPEND_OTHERS: OtherFields = { tags: [2 << 3, (3 << 3) | 2], last: 3 }
const READ_OTHERS: OtherFields = { tags: [(2 << 3) | 2], last: 2 }

interface OtherFields {
  readonly tags: readonly number[]
  readonly last: number
}

/**
 * Decodes an `AppendInput` message. Byte arrays are views of `bytes`. Throws a `HeadwaterError` of the given
 * code if the message is malformed, and 422 `invalid` if a number exceeds 2^53 - 1.
 *
 * A record can be as short as two bytes, so a frame could hold a million: all are checked, but only one more
 * than the limit of a batch is kept, for `appendBatch` to reject.
 */
export function decodeAppendInput(bytes: Uint8Array, code: ErrorCode): AppendInput {
  const inputs: RecordInput[] = []
  let largestTimestamp = 0
  const keep = (_: unknown, timestamp: number | undefined, headers: readonly Header[], body: Uint8Array) => {
    if (timestamp !== undefined && timestamp > largestTimestamp) largestTimestamp = timestamp
    if (inputs.length > BATCH_RECORDS_MAX) return
    inputs.push({ timestamp, headers: headers === NO_HEADERS ? undefined : headers, body })
  }
  const conditions = orThrow(
    () => {
      const others = readRecords(bytes, APPEND_RECORD, APPEND_OTHERS, keep)
      return others.length === 0 ? undefined : fromBinary(AppendInputSchema, others)
    },
    (cause) => new HeadwaterError(code, `invalid AppendInput message: ${problemOf(cause)}`, { cause }),
  )
  assertInteger(largestTimestamp, 'timestamp')
  const matchSeqNum = conditions?.matchSeqNum === undefined ? undefined : Number(conditions.matchSeqNum)
  if (matchSeqNum !== undefined) assertInteger(matchSeqNum, 'match_seq_num')
  return { inputs, conditions: { matchSeqNum, fencingToken: conditions?.fencingToken } }
}

/**
 * Decodes a `ReadBatch` message with views of `bytes`. Unknown fields are skipped. Throws {@link Malformed}.
 */
export function decodeReadBatch(bytes: Uint8Array): ReceivedBatch {
  return received(() => {
    const records: SequencedRecord[] = []
    const others = readRecords(bytes, SEQUENCED_RECORD, READ_OTHERS, (...fields) => {
      if (records.length === READ_RECORDS_MAX) throw tooManyRecords()
      records.push(exactRecord(...fields))
    })
    const tail = others.length === 0 ? undefined : fromBinary(ReadBatchSchema, others).tail
    return { records, tail: tail && positionOf(tail) }
  })
}

/** Decodes an `AppendAck` message. Throws {@link Malformed}. */
export function decodeAppendAck(bytes: Uint8Array): AppendAck {
  return received(() => {
    const { start, end, tail } = fromBinary(AppendAckSchema, bytes)
    return { start: positionOf(start), end: positionOf(end), tail: positionOf(tail) }
  })
}

function received<Message>(decode: () => Message): Message {
  return orThrow(decode, (error) =>
    error instanceof Malformed ? error : new Malformed('a protobuf message is malformed', undefined, error),
  )
}

function orThrow<Result>(decode: () => Result, errorOf: (cause: unknown) => Error): Result {
  try {
    return decode()
  } catch (cause) {
    throw errorOf(cause)
  }
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Reads the records of a message, and returns its other known fields as a message of their own. */
function readRecords(
  bytes: Uint8Array,
  record: RecordFields,
  others: OtherFields,
  make: Parameters<typeof readRecord<void>>[3],
): Uint8Array {
  const reader = new MessageReader(bytes)
  const parts: Uint8Array[] = []
  while (reader.offset < bytes.length) {
    const start = reader.offset
    const tag = reader.tag()
    if (tag === TAG_RECORD) readRecord(reader, reader.fieldEnd(), record, make)
    else {
      const isOther = others.tags.includes(tag)
      reader.skip(tag, isOther ? 0 : others.last)
      if (isOther) parts.push(bytes.subarray(start, reader.offset))
    }
  }
  return parts.length === 0 ? EMPTY_BYTES : concatBytes(parts)
}

/** A reader that skips unknown fields, but not known ones of another wire type. */
class MessageReader extends FieldReader {
  override skip(tag: number, last: number): void {
    const number = tag >>> 3
    if (number <= last) throw new RangeError('a field has the wrong wire type')
    const reader = new BinaryReader(this.data)
    reader.pos = this.offset
    reader.skip((tag & 7) as WireType, number)
    this.offset = reader.pos
    if (this.offset > this.data.length) throw new RangeError('premature EOF')
  }
}

function positionOf(message: StreamPosition | undefined): StreamTail {
  if (message === undefined) return STREAM_START
  const position = { seqNum: exact(message.seqNum), timestamp: exact(message.timestamp) }
  return message.closed ? { ...position, closed: true } : position
}

function exact(number: bigint): number {
  if (number > INTEGER_MAX) throw new RangeError('a number beyond 2^53 - 1')
  return Number(number)
}

function positionMessage(position: StreamTail): MessageInitShape<typeof StreamPositionSchema> {
  const { seqNum, timestamp, closed = false } = position
  return { seqNum: BigInt(seqNum), timestamp: BigInt(timestamp), closed }
}

/** Encodes an `AppendAck` message. All three positions are present, even if every number in them is 0. */
export function encodeAppendAck({ start, end, tail }: AppendAck): Uint8Array {
  const ack = { start: positionMessage(start), end: positionMessage(end), tail: positionMessage(tail) }
  return toBinary(AppendAckSchema, create(AppendAckSchema, ack))
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
  return toBinary(ReadBatchSchema, create(ReadBatchSchema, { tail: positionMessage(tail) }))
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
  return encodeMessage(records, APPEND_RECORD, encodedConditions(matchSeqNum, fencingToken), allocate)
}

function encodedConditions(matchSeqNum: number | undefined, fencingToken: string | undefined): Uint8Array {
  if (matchSeqNum === undefined && fencingToken === undefined) return EMPTY_BYTES
  const conditions = create(AppendInputSchema, {
    ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
    ...(fencingToken !== undefined && { fencingToken }),
  })
  return toBinary(AppendInputSchema, conditions)
}
