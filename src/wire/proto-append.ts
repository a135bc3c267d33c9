import { create, toBinary } from '@bufbuild/protobuf'
import type { RecordInput } from '../model/append-input.ts'
import { EMPTY_BYTES } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { checkInteger } from '../model/integers.ts'
import { BATCH_RECORDS_MAX, INTEGER_MAX } from '../model/limits.ts'
import type { Header } from '../model/record.ts'
import type { DecodedAppend } from './decoded-append.ts'
import { AppendAckSchema } from './gen/records_pb.ts'
import { positionMessage } from './proto-position.ts'
import { LENGTH_DELIMITED, MalformedProto, ProtoReader, VARINT } from './proto-reader.ts'

/**
 * Decodes an `AppendInput` message (wire-behaviour.md 6.6). Byte arrays are views of `bytes`. Throws a `HeadwaterError` of the given
 * code when it is malformed, 422 `invalid` when a number is beyond 2^53 - 1.
 *
 * Written by hand, for it is the hot path, and for memory: two bytes make a record, so that a frame could hold a million.
 * Those behind the limit of a batch are checked, but not kept: one more than the limit, for `appendBatch` to refuse.
 */
export function decodeAppendInput(bytes: Uint8Array, code: ErrorCode): DecodedAppend {
  try {
    return readAppendInput(new ProtoReader(bytes), bytes.length)
  } catch (cause) {
    if (!(cause instanceof MalformedProto)) throw cause
    throw new HeadwaterError(code, `invalid AppendInput message: ${cause.message}`, { cause })
  }
}

/** Encodes an `AppendAck` message, with its three parts even when every number in them is 0. */
export function encodeAppendAck({ start, end, tail }: AppendAck): Uint8Array {
  return toBinary(
    AppendAckSchema,
    create(AppendAckSchema, {
      start: positionMessage(start),
      end: positionMessage(end),
      tail: positionMessage(tail),
    }),
  )
}

const INPUT_RECORD = (1 << 3) | LENGTH_DELIMITED
const INPUT_MATCH_SEQ_NUM = (2 << 3) | VARINT
const INPUT_FENCING_TOKEN = (3 << 3) | LENGTH_DELIMITED
const RECORD_TIMESTAMP = (1 << 3) | VARINT
const RECORD_HEADER = (2 << 3) | LENGTH_DELIMITED
const RECORD_BODY = (3 << 3) | LENGTH_DELIMITED
const HEADER_NAME = (1 << 3) | LENGTH_DELIMITED
const HEADER_VALUE = (2 << 3) | LENGTH_DELIMITED

function readAppendInput(reader: ProtoReader, end: number): DecodedAppend {
  const inputs: RecordInput[] = []
  let matchSeqNum: number | undefined
  let fencingToken: string | undefined
  let largestTimestamp = 0
  while (reader.offset < end) {
    const tag = reader.tag()
    if (tag === INPUT_RECORD) {
      const record = readRecord(reader, reader.end(end))
      largestTimestamp = Math.max(largestTimestamp, record.timestamp ?? 0)
      if (inputs.length <= BATCH_RECORDS_MAX) inputs.push(record)
    } else if (tag === INPUT_MATCH_SEQ_NUM) matchSeqNum = reader.uint64()
    else if (tag === INPUT_FENCING_TOKEN) fencingToken = reader.string()
    else skipUnknown(reader, tag, 3)
  }
  // Only now: a message that is malformed further on is refused for that.
  if (largestTimestamp > INTEGER_MAX) checkInteger(largestTimestamp, 'timestamp')
  if (matchSeqNum !== undefined) checkInteger(matchSeqNum, 'match_seq_num')
  return { inputs, conditions: { fencingToken, matchSeqNum } }
}

interface MutableRecord {
  timestamp: number | undefined
  headers: Header[]
  body: Uint8Array
}

const NO_HEADERS: Header[] = []

function readRecord(reader: ProtoReader, end: number): MutableRecord {
  const record: MutableRecord = { timestamp: undefined, headers: NO_HEADERS, body: EMPTY_BYTES }
  while (reader.offset < end) {
    const tag = reader.tag()
    if (tag === RECORD_BODY) record.body = reader.bytes()
    else if (tag === RECORD_TIMESTAMP) record.timestamp = reader.uint64()
    else if (tag === RECORD_HEADER) {
      if (record.headers === NO_HEADERS) record.headers = []
      record.headers.push(readHeader(reader, reader.end(end)))
    } else skipUnknown(reader, tag, 3)
  }
  if (reader.offset !== end) throw new MalformedProto('a record overruns its length')
  return record
}

function readHeader(reader: ProtoReader, end: number): Header {
  let name: Uint8Array = EMPTY_BYTES
  let value: Uint8Array = EMPTY_BYTES
  while (reader.offset < end) {
    const tag = reader.tag()
    if (tag === HEADER_NAME) name = reader.bytes()
    else if (tag === HEADER_VALUE) value = reader.bytes()
    else skipUnknown(reader, tag, 2)
  }
  if (reader.offset !== end) throw new MalformedProto('a header overruns its length')
  return [name, value]
}

/** Fields of a later version are skipped; a field that is known must have its own wire type. */
function skipUnknown(reader: ProtoReader, tag: number, lastKnownField: number): void {
  if (tag < (lastKnownField + 1) * 8) throw new MalformedProto('a field has the wrong wire type')
  reader.skip(tag)
}
