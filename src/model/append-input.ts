import { utf8 } from './bytes.ts'
import { isCommandShaped, parseCommand } from './command.ts'
import { invalid, refuse } from './errors.ts'
import { fencingTokenProblem } from './fencing-token.ts'
import { checkInteger } from './integers.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
  RECORD_HEADERS_MAX,
  RECORD_METERED_BYTES_MAX,
} from './limits.ts'
import { type AppendRecord, encodedBytesMaxOf, type Header, meteredBytesOf } from './record.ts'
import { SharedCopies } from './shared-copies.ts'

export type BytesOrText = Uint8Array | string

/** A record to append: a body alone, or with headers and a timestamp. Strings are stored as UTF-8. */
export type RecordInput =
  | BytesOrText
  | {
      readonly body?: BytesOrText
      readonly headers?: readonly (readonly [name: BytesOrText, value: BytesOrText])[]
      /** Milliseconds since the Unix epoch, 0 to 2^53 - 1. What becomes of it is the stream's `timestamping`. */
      readonly timestamp?: number | undefined
    }

export function asArray(records: RecordInput | readonly RecordInput[]): readonly RecordInput[] {
  return Array.isArray(records) ? records : [records as RecordInput]
}

/** Conditions of an append: refused with `fencing_token_mismatch` or `seq_num_mismatch`, checked in this order. */
export interface AppendConditions {
  readonly fencingToken?: string | undefined
  /** The sequence number that the first record must get. 0 is a condition like any other. */
  readonly matchSeqNum?: number | undefined
}

/** A validated, metered batch: what the engine sequences. */
export interface AppendBatch extends AppendConditions {
  readonly records: readonly AppendRecord[]
  readonly meteredBytes: number
}

/**
 * Validates and meters a batch in the order of wire-behaviour.md 3.3: each record (header and command rules, size), then
 * empty, count, total size; then the conditions. Throws 422 `invalid`.
 */
export function appendBatch(inputs: readonly RecordInput[], conditions: AppendConditions = {}): AppendBatch {
  const records: AppendRecord[] = []
  const copies = inputs.length > 1 ? new SharedCopies() : undefined
  let meteredBytes = 0
  let encodedBytes = 0
  for (const input of inputs) {
    const record = appendRecord(input, copies)
    encodedBytes += record.encodedBytesMax
    meteredBytes += record.meteredBytes
    records.push(record)
    // A batch that is far too long is refused below; its records need not all be kept for that.
    if (records.length > BATCH_RECORDS_MAX) break
  }
  if (records.length === 0) throw invalid('record batch must not be empty', 'records')
  if (records.length > BATCH_RECORDS_MAX) {
    throw invalid(`record batch must not exceed ${BATCH_RECORDS_MAX} records`, 'records')
  }
  if (meteredBytes > BATCH_METERED_BYTES_MAX) {
    throw invalid('record batch must not exceed a metered size of 1 MiB', 'records')
  }
  checkEncodedSize(encodedBytes, 'record batch')
  const { fencingToken, matchSeqNum } = conditions
  if (fencingToken !== undefined) refuse(fencingTokenProblem(fencingToken), 'fencing_token')
  if (matchSeqNum !== undefined) checkInteger(matchSeqNum, 'match_seq_num')
  return { records, meteredBytes, fencingToken, matchSeqNum }
}

/** Validates and meters one record, whose bytes are copied, where there are several records, to what these share. Throws 422 `invalid`. */
export function appendRecord(input: RecordInput, copies?: SharedCopies): AppendRecord {
  const { body, headers, timestamp } = partsOf(input)
  if (timestamp !== undefined) checkInteger(timestamp, 'timestamp')
  const headerBytes = (headers ?? []).map((header) => headerOf(header, copies))
  const bodyBytes = bytesOf(body ?? '', copies)
  const command = isCommandShaped(headerBytes) ? parseCommand(headerBytes[0]![1], bodyBytes) : undefined
  if (command === undefined && headerBytes.some(([name]) => name.length === 0)) {
    throw invalid('invalid header: empty name', 'headers')
  }
  if (headerBytes.length > RECORD_HEADERS_MAX) throw invalid('invalid header: too many', 'headers')
  const meteredBytes = meteredBytesOf(headerBytes, bodyBytes)
  if (meteredBytes > RECORD_METERED_BYTES_MAX) {
    throw invalid('record must have metered size less than 1 MiB', 'records')
  }
  const encodedBytesMax = encodedBytesMaxOf(headerBytes, bodyBytes)
  checkEncodedSize(encodedBytesMax, 'record')
  return { timestamp, headers: headerBytes, body: bodyBytes, meteredBytes, encodedBytesMax, command }
}

function checkEncodedSize(bytes: number, what: string): void {
  if (bytes > BATCH_ENCODED_BYTES_MAX) {
    throw invalid(
      `${what} must not exceed ${BATCH_ENCODED_BYTES_MAX} bytes in its protobuf encoding`,
      'records',
    )
  }
}

function partsOf(input: RecordInput): Exclude<RecordInput, BytesOrText> {
  if (typeof input === 'string' || input instanceof Uint8Array) return { body: input }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw invalid('a record must be a string, a Uint8Array or an object', 'records')
  }
  if (input.headers !== undefined && !Array.isArray(input.headers)) {
    throw invalid('headers must be an array of pairs', 'headers')
  }
  return input
}

function headerOf(header: readonly [BytesOrText, BytesOrText], copies: SharedCopies | undefined): Header {
  if (!Array.isArray(header) || header.length !== 2) {
    throw invalid('a header must be a pair of name and value', 'headers')
  }
  return [bytesOf(header[0], copies), bytesOf(header[1], copies)]
}

function bytesOf(value: BytesOrText, copies: SharedCopies | undefined): Uint8Array {
  if (typeof value === 'string') return utf8(value)
  // A copy: the caller may use its buffer again as soon as the call returns. Not `slice`, which on a Node `Buffer` makes a view.
  if (value instanceof Uint8Array) return copies === undefined ? new Uint8Array(value) : copies.of(value)
  throw invalid('a record body, header name or header value must be a string or a Uint8Array', 'records')
}
