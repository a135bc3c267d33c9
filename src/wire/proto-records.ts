import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import type { AppendInput, RecordInput } from '../model/append-input.ts'
import { concatBytes, EMPTY_BYTES } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX, INTEGER_MAX } from '../model/limits.ts'
import type { StreamTail } from '../model/position.ts'
import type { Header } from '../model/record.ts'
import { assertInteger } from '../model/validation.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { TAG_SEQ_NUM, TAG_TIMESTAMP, writeVarint } from '../storage/block-codec.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import type { Compression } from './codecs.ts'
import { frameMessage, messageFrameHead } from './session-frames.ts'

/**
 * Decodes an `AppendInput` message (docs/protocol.md "Protobuf messages"). Byte arrays are views of `bytes`.
 * Throws a `HeadwaterError` of the given code if the message is malformed, and 422 `invalid` if a number
 * exceeds 2^53 - 1.
 *
 * Reads field by field instead of through the generated code, to bound memory: a record can be as short as
 * two bytes, so a frame could hold a million. All records are checked, but only one more than the limit of a
 * batch is kept, for `appendBatch` to reject.
 */
export function decodeAppendInput(bytes: Uint8Array, code: ErrorCode): AppendInput {
  // Views of a Node `Buffer` would be `Buffer`s, whose `slice` does not copy.
  const reader = new MessageReader(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  let message: ReturnType<typeof readAppendInput>
  try {
    message = readAppendInput(reader)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new HeadwaterError(code, `invalid AppendInput message: ${reason}`, { cause })
  }
  const { inputs, conditions, largestTimestamp } = message
  assertInteger(largestTimestamp, 'timestamp')
  if (conditions.matchSeqNum !== undefined) assertInteger(conditions.matchSeqNum, 'match_seq_num')
  return { inputs, conditions }
}

/** Allocates less than its base class for what every record has. */
class MessageReader extends BinaryReader {
  readonly #data: Uint8Array

  constructor(data: Uint8Array) {
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
}

function readAppendInput(reader: MessageReader) {
  const inputs: RecordInput[] = []
  let matchSeqNum: number | undefined
  let fencingToken: string | undefined
  let largestTimestamp = 0
  while (reader.pos < reader.len) {
    const tag = reader.combinedTag()
    const field = tag >>> 3
    const type = tag & 7
    if (field === 1) {
      const record = readRecord(reader, endOf(reader, type, reader.len))
      largestTimestamp = Math.max(largestTimestamp, record.timestamp ?? 0)
      if (inputs.length <= BATCH_RECORDS_MAX) inputs.push(record)
    } else if (field === 2) matchSeqNum = uint64Of(reader, type)
    else if (field === 3) {
      expectType(type, WireType.LengthDelimited)
      fencingToken = reader.string(true)
    } else reader.skip(type, field)
  }
  return { inputs, conditions: { matchSeqNum, fencingToken }, largestTimestamp }
}

interface DecodedRecord {
  readonly timestamp: number | undefined
  readonly headers: readonly Header[] | undefined
  readonly body: Uint8Array
}

function readRecord(reader: MessageReader, end: number): DecodedRecord {
  let timestamp: number | undefined
  let headers: Header[] | undefined
  let body: Uint8Array = EMPTY_BYTES
  while (reader.pos < end) {
    const tag = reader.combinedTag()
    const field = tag >>> 3
    const type = tag & 7
    if (field === 1) timestamp = uint64Of(reader, type)
    else if (field === 2) {
      headers ??= []
      headers.push(readHeader(reader, endOf(reader, type, end)))
    } else if (field === 3) body = bytesOf(reader, type)
    else reader.skip(type, field)
  }
  if (reader.pos !== end) throw new RangeError('a record overruns its length')
  return { timestamp, headers, body }
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

/** A number, exact up to 2^53 - 1; `Infinity` beyond that. */
function uint64Of(reader: BinaryReader, type: WireType): number {
  expectType(type, WireType.Varint)
  const value = Number(reader.uint64())
  return value > INTEGER_MAX ? Number.POSITIVE_INFINITY : value
}

function expectType(type: WireType, expected: WireType): void {
  if (type !== expected) throw new RangeError('a field has the wrong wire type')
}

const TAG_TAIL_OF_BATCH = (2 << 3) | 2
const TAG_CLOSED = 15 << 3
/** Two numbers of up to 2^53 - 1 and a flag, each with its tag. */
const POSITION_BYTES_MAX = 2 * (1 + 8) + 2
/** A position is shorter than 128 bytes, so its length takes one. */
const POSITION_FIELD_BYTES_MAX = 2 + POSITION_BYTES_MAX

/**
 * Encodes an `AppendAck` message. All three positions are present, even if every number in them is 0. Written
 * by hand, because a session sends one for every batch; `test/wire/proto-append.test.ts` compares it with the
 * generated code.
 */
export function encodeAppendAck({ start, end, tail }: AppendAck): Uint8Array {
  const bytes = new Uint8Array(3 * POSITION_FIELD_BYTES_MAX)
  let length = 0
  length = writePosition(bytes, length, (1 << 3) | 2, start)
  length = writePosition(bytes, length, (2 << 3) | 2, end)
  length = writePosition(bytes, length, (3 << 3) | 2, tail)
  return bytes.subarray(0, length)
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
  const bytes = new Uint8Array(POSITION_FIELD_BYTES_MAX)
  return bytes.subarray(0, writePosition(bytes, 0, TAG_TAIL_OF_BATCH, tail))
}

const frames = new WeakMap<ReadBatch, Map<Compression | undefined, MaybePromise<Uint8Array>>>()

/**
 * The session frame of a batch, made once for each batch and algorithm: all followers of a stream send the
 * same bytes, which must not be written to.
 */
export function readBatchFrame(
  batch: ReadBatch,
  compression: Compression | undefined,
): MaybePromise<Uint8Array> {
  let framesOfBatch = frames.get(batch)
  if (framesOfBatch === undefined) {
    framesOfBatch = new Map()
    frames.set(batch, framesOfBatch)
  }
  let frame = framesOfBatch.get(compression)
  if (frame === undefined) {
    frame = frameMessage(encodeReadBatch(batch), compression)
    framesOfBatch.set(compression, frame)
    // The next reader retries after a failure.
    if (isPromise(frame)) frame.catch(() => framesOfBatch.delete(compression))
  }
  return frame
}

/** Batches from this size on are sent without being copied into a frame, in bytes. */
const UNCOPIED_BYTES_MIN = 65_536

/**
 * The parts of the session frame of a large batch, which share memory with it and must not be written to.
 * Undefined if the batch is small: its frame is better made once and shared.
 */
export function largeBatchFrame(batch: ReadBatch): readonly Uint8Array[] | undefined {
  const { data, tail } = batch
  if (data.length < UNCOPIED_BYTES_MIN) return undefined
  if (tail === undefined) return [messageFrameHead(data.length), data]
  const end = encodeHeartbeat(tail)
  return [messageFrameHead(data.length + end.length), data, end]
}

/** The session frame of a heartbeat, which is too short to be compressed: made at once. */
export function heartbeatFrame(tail: StreamTail): MaybePromise<Uint8Array> {
  return frameMessage(encodeHeartbeat(tail), undefined)
}

/** Writes a field that is a `StreamPosition` message, without numbers that are 0. Returns its end. */
function writePosition(
  bytes: Uint8Array,
  start: number,
  tag: number,
  { seqNum, timestamp, closed }: StreamTail,
): number {
  let end = start + 2
  if (seqNum !== 0) {
    bytes[end] = TAG_SEQ_NUM
    end = writeVarint(bytes, end + 1, seqNum)
  }
  if (timestamp !== 0) {
    bytes[end] = TAG_TIMESTAMP
    end = writeVarint(bytes, end + 1, timestamp)
  }
  if (closed) {
    bytes[end] = TAG_CLOSED
    bytes[end + 1] = 1
    end += 2
  }
  bytes[start] = tag
  bytes[start + 1] = end - start - 2
  return end
}
