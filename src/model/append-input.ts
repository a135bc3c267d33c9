import { copiedBytes, copiedText, EMPTY_BYTES, UNBUFFERED_BYTES_MAX, utf8 } from './bytes.ts'
import { assertValid, type HeadwaterError, invalid } from './errors.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
  LARGE_APPEND_BYTES_MAX,
  LARGE_APPEND_RECORDS_MAX,
  MIB,
  PRODUCER_ID_BYTES_MAX,
  RECORD_METERED_BYTES_MAX,
  STREAM_SEQ_BYTES_MAX,
} from './limits.ts'
import { fencingTokenProblem, textProblem } from './names.ts'
import {
  type AppendRecord,
  type Command,
  encodedBytesMaxOf,
  type Header,
  isCommandShaped,
  meteredBytesOf,
  NO_HEADERS,
  parseCommand,
  type SequencedRecord,
} from './record.ts'
import {
  assertInteger,
  assertMembers,
  assertSignal,
  type Check,
  complete,
  type MembersOf,
  millisecondsOf,
  type Time,
  unchecked,
  unknownMember,
} from './validation.ts'

/** Identifies a batch of a producer, so that the batch is stored once however often it is appended. */
export interface ProducerBatch {
  /** The name of the producer: 1 to 256 bytes of UTF-8, unique among the writers of the stream. */
  readonly id: string
  /** The incarnation of the producer. A greater one fences off the lower ones. An integer from 0. */
  readonly epoch: number
  /** The number of the batch among those of the epoch: 0, 1, 2 and so on. */
  readonly seq: number
}

/** Bytes, or a string that is stored as UTF-8. */
export type BytesOrText = Uint8Array | string

/** A record to append: a body alone, or an object with body, headers and timestamp. */
export type RecordInput =
  | BytesOrText
  | {
      /** Empty by default. */
      readonly body?: BytesOrText | undefined
      /** Pairs of name and value, in order; names may repeat but must not be empty. */
      readonly headers?: readonly (readonly [name: BytesOrText, value: BytesOrText])[] | undefined
      /** The stream's `timestamping` decides whether and how it is used. Default: the time of the append. */
      readonly timestamp?: Time | undefined
    }

/** Conditions of an append, checked in this order. An append that does not meet them stores nothing. */
export interface AppendConditions {
  /** The stream's fencing token, at most 36 bytes. Otherwise rejects with `fencing_token_mismatch`. */
  readonly fencingToken?: string | undefined
  /** The sequence number of the first record, 0 included. Otherwise rejects with `seq_num_mismatch`. */
  readonly matchSeqNum?: number | undefined
  /**
   * The number of the batch among those of its producer. A batch that is stored already is not stored again,
   * whatever the other conditions say: the append resolves to the same ack with `duplicate`, or rejects with
   * `already_appended` if the producer has appended others since. Otherwise rejects with `producer_fenced` if
   * the producer has a greater epoch, with `producer_gap` if a batch before this one is missing, with
   * `invalid` if a new epoch does not begin at 0, and with `too_many_producers`.
   */
  readonly producer?: ProducerBatch | undefined
  /**
   * An opaque text of 1 to 256 bytes of UTF-8 that must be greater, byte by byte, than that of the last
   * append that had one. Otherwise the append rejects with `stream_seq_not_increasing`.
   */
  readonly streamSeq?: string | undefined
}

const assertText =
  (problemOf: (text: string) => string | undefined): Check =>
  (value, field) =>
    assertValid(problemOf(value as string), field)

export const assertFencingToken: Check = assertText(fencingTokenProblem)

const PRODUCER_BATCH: Readonly<Record<keyof ProducerBatch, Check>> = {
  id: assertText((id) => textProblem('producer id', id, PRODUCER_ID_BYTES_MAX, 'filled')),
  epoch: assertInteger,
  seq: assertInteger,
}

const APPEND_OPTIONS: MembersOf<AppendConditions & { readonly signal: AbortSignal }> = {
  fencingToken: assertFencingToken,
  matchSeqNum: assertInteger,
  producer: complete(PRODUCER_BATCH),
  streamSeq: assertText((text) => textProblem('stream sequence', text, STREAM_SEQ_BYTES_MAX, 'filled')),
  signal: assertSignal,
}

/** The decoded body of an append request, which {@link appendBatch} validates. */
export interface AppendInput {
  /** The records. A decoder may stop after one more than the limit of a batch. */
  readonly inputs: readonly RecordInput[]
  /** The conditions, unchecked. */
  readonly conditions: AppendConditions
}

/** Records that become one stored block: 1 to 1,000. */
export interface BatchPart {
  readonly records: readonly AppendRecord[]
  readonly meteredBytes: number
}

/** A validated and metered batch that is ready for sequencing. */
export interface AppendBatch extends AppendConditions, BatchPart {
  records: readonly AppendRecord[]
  /** All records in order, in parts within the limits of a batch; absent if the batch is within them. */
  readonly parts?: readonly BatchPart[] | undefined
  /** Whether byte arrays of the records are the caller's: nothing may use them once its call has returned. */
  isBorrowed?: boolean | undefined
}

const BATCH_LIMITS = {
  records: BATCH_RECORDS_MAX,
  meteredBytes: BATCH_METERED_BYTES_MAX,
  encodedBytes: BATCH_ENCODED_BYTES_MAX,
}

/** The encoding is limited by the metered size, of which it is a small multiple. */
const LARGE_LIMITS: typeof BATCH_LIMITS = {
  records: LARGE_APPEND_RECORDS_MAX,
  meteredBytes: LARGE_APPEND_BYTES_MAX,
  encodedBytes: Number.POSITIVE_INFINITY,
}

/**
 * Validates and meters a batch in the order of docs/protocol.md "Append request": each record, the number of
 * records, their size, then the conditions. Copies the byte arrays of the caller. Throws `invalid`.
 */
export function appendBatch(
  input: RecordInput | readonly RecordInput[],
  conditions?: AppendConditions,
): AppendBatch {
  return checkedBatch(input, conditions, BATCH_LIMITS, copiedBytes)
}

/**
 * Does what {@link appendBatch} does, but leaves byte arrays to the caller. Before its call returns, the
 * batch gets bytes of its own by {@link ownBytes}: those of the block that it is encoded in, or copies.
 */
export function borrowedBatch(
  input: RecordInput | readonly RecordInput[],
  conditions?: AppendConditions,
): AppendBatch {
  let isBorrowed = false
  const batch = checkedBatch(input, conditions, BATCH_LIMITS, (bytes) => {
    isBorrowed = true
    return bytes
  })
  batch.isBorrowed = isBorrowed
  return batch
}

/** Gives a borrowed batch bytes of its own: those of `source`, which has the same records, or copies. */
export function ownBytes(batch: AppendBatch, source?: readonly SequencedRecord[]): void {
  if (!batch.isBorrowed) return
  const copy = source === undefined ? copiedBytes : theSame
  batch.records = batch.records.map((record, index) => {
    const { headers, body }: Pick<AppendRecord, 'headers' | 'body'> = source?.[index] ?? record
    const own = headers.map(([name, value]): Header => [copy(name), copy(value)])
    return { ...record, headers: own, body: copy(body) }
  })
  batch.isBorrowed = false
}

/** A batch is copied out of memory that is more than so many times as large. */
const HELD_FACTOR = 8

/**
 * Does what {@link appendBatch} does for byte arrays that nothing will write to: they are copied only if the
 * batch would keep much more memory than its metered size, by which batches that wait are limited.
 *
 * @param held The memory that the byte arrays are views of.
 */
export function ownedBatch(
  input: readonly RecordInput[],
  conditions: AppendConditions,
  { buffer }: Uint8Array,
): AppendBatch {
  const batch = checkedBatch(input, conditions, BATCH_LIMITS, theSame)
  return HELD_FACTOR * batch.meteredBytes < buffer.byteLength ? appendBatch(input, conditions) : batch
}

const theSame: CopyBytes = (bytes) => bytes

/**
 * Does what {@link appendBatch} does for appends of up to `LARGE_APPEND_RECORDS_MAX` records and
 * `LARGE_APPEND_BYTES_MAX` metered bytes, for protocols whose messages may be larger than a record.
 */
export function largeAppendBatch(input: readonly RecordInput[], conditions?: AppendConditions): AppendBatch {
  const batch = checkedBatch(input, conditions, LARGE_LIMITS, copiedBytes)
  const parts = partsOf(batch.records)
  return parts.length === 1 ? batch : { ...batch, parts }
}

export class BatchSize {
  records = 0
  meteredBytes = 0
  encodedBytes = 0

  /** Whether a batch can have another record. One record alone is checked by {@link appendRecord}. */
  hasRoomFor(record: SizedRecord): boolean {
    return (
      this.records < BATCH_RECORDS_MAX &&
      this.meteredBytes + record.meteredBytes <= BATCH_METERED_BYTES_MAX &&
      this.encodedBytes + record.encodedBytesMax <= BATCH_ENCODED_BYTES_MAX
    )
  }

  add(record: SizedRecord): void {
    this.records++
    this.meteredBytes += record.meteredBytes
    this.encodedBytes += record.encodedBytesMax
  }
}

type SizedRecord = Pick<AppendRecord, 'meteredBytes' | 'encodedBytesMax'>

function partsOf(records: readonly AppendRecord[]): BatchPart[] {
  const parts: { readonly records: AppendRecord[]; readonly size: BatchSize }[] = []
  for (const record of records) {
    if (!parts.at(-1)?.size.hasRoomFor(record)) parts.push({ records: [], size: new BatchSize() })
    const part = parts.at(-1)!
    part.records.push(record)
    part.size.add(record)
  }
  return parts.map(({ records, size }) => ({ records, meteredBytes: size.meteredBytes }))
}

function checkedBatch(
  input: RecordInput | readonly RecordInput[],
  conditions: AppendConditions | undefined,
  limits: typeof BATCH_LIMITS,
  copy: CopyBytes,
): AppendBatch {
  const records: AppendRecord[] = []
  const size = new BatchSize()
  const inputs: readonly RecordInput[] = Array.isArray(input) ? input : [input]
  for (const input of inputs) {
    const record = appendRecord(input, copy)
    if (records.at(-1)?.command?.kind === 'close')
      throw invalid('no record may follow a `close` command', 'records')
    records.push(record)
    size.add(record)
    // A batch that is far too long is rejected below without keeping all of its records.
    if (records.length > limits.records) break
  }
  const { meteredBytes, encodedBytes } = size
  const count = records.length
  if (count === 0 || count > limits.records || meteredBytes > limits.meteredBytes) {
    throw batchSizeError(count, limits)
  }
  if (encodedBytes > limits.encodedBytes) throw tooLargeEncoded('record batch')
  if (conditions !== undefined) assertMembers(conditions, APPEND_OPTIONS, 'options')
  return {
    records,
    meteredBytes,
    fencingToken: conditions?.fencingToken,
    matchSeqNum: conditions?.matchSeqNum,
    // A copy: the caller may change its own while the batch waits.
    producer: conditions?.producer && { ...conditions.producer },
    streamSeq: conditions?.streamSeq,
  }
}

/** The error for a batch that is empty, has too many records, or else is too large. */
export function batchSizeError(count: number, limits = BATCH_LIMITS): HeadwaterError {
  if (count === 0) return invalid('record batch must not be empty', 'records')
  return count > limits.records
    ? invalid(`record batch must not exceed ${limits.records} records`, 'records')
    : invalid(`record batch must not exceed a metered size of ${limits.meteredBytes / MIB} MiB`, 'records')
}

type RecordParts = Exclude<RecordInput, BytesOrText>
type CopyBytes = (bytes: Uint8Array) => Uint8Array

/** Validates and meters one record, and copies its bytes and texts. Throws `invalid`. */
export function appendRecord(input: RecordInput, copy: CopyBytes = copiedBytes): AppendRecord {
  const isBody = typeof input === 'string' || input instanceof Uint8Array
  const parts: RecordParts = isBody ? { body: input } : partsOfRecord(input)
  const timestamp = parts.timestamp === undefined ? undefined : millisecondsOf(parts.timestamp)
  if (timestamp !== undefined) assertInteger(timestamp, 'timestamp')
  const headers = parts.headers?.length ? headersOf(parts.headers, copy) : NO_HEADERS
  const body = parts.body === undefined ? EMPTY_BYTES : bytesOf(parts.body, 'body', copy)
  const command = headers.length > 0 ? commandOf(headers, body) : undefined
  const meteredBytes = meteredBytesOf(headers, body)
  if (meteredBytes > RECORD_METERED_BYTES_MAX) {
    throw invalid('record must have metered size less than 1 MiB', 'records')
  }
  const encodedBytesMax = encodedBytesMaxOf(headers, body)
  if (encodedBytesMax > BATCH_ENCODED_BYTES_MAX) throw tooLargeEncoded('record')
  return { timestamp, headers, body, meteredBytes, encodedBytesMax, command }
}

/** The command that a record with headers is, if any. Throws if the headers break a rule. */
function commandOf(headers: readonly Header[], body: Uint8Array): Command | undefined {
  if (isCommandShaped(headers)) return parseCommand(headers[0]![1], body)
  if (headers.some(([name]) => name.length === 0)) throw invalid('invalid header: empty name', 'headers')
  return undefined
}

function tooLargeEncoded(what: string): HeadwaterError {
  return invalid(
    `${what} must not exceed ${BATCH_ENCODED_BYTES_MAX} bytes in its protobuf encoding`,
    'records',
  )
}

/** The members of a record. They are checked where they are used. */
const RECORD: MembersOf<RecordParts> = { body: unchecked, headers: unchecked, timestamp: unchecked }
const NOT_JSON = '; to append JSON values, use `stream.json()`'

function partsOfRecord(input: RecordParts): RecordParts {
  if (typeof input !== 'object' || input === null || Array.isArray(input) || ArrayBuffer.isView(input)) {
    throw invalid(`a record must be a string, a Uint8Array or an object${NOT_JSON}`, 'records')
  }
  for (const name in input) {
    if (!Object.hasOwn(RECORD, name)) throw unknownMember(name, RECORD, NOT_JSON)
  }
  if (input.body === undefined && input.headers === undefined && input.timestamp === undefined) {
    throw invalid(`a record must have \`body\`, \`headers\` or \`timestamp\`${NOT_JSON}`, 'records')
  }
  if (input.headers !== undefined && !Array.isArray(input.headers)) {
    throw invalid('`headers` must be an array of pairs', 'headers')
  }
  return input
}

function headersOf(inputs: NonNullable<RecordParts['headers']>, copy: CopyBytes): Header[] {
  const headers: Header[] = []
  // Not `map`, which would skip the holes of a sparse array.
  for (const header of inputs) {
    if (!Array.isArray(header) || header.length !== 2) {
      throw invalid('a header must be a pair of name and value', 'headers')
    }
    headers.push([bytesOf(header[0], 'headers', copy), bytesOf(header[1], 'headers', copy)])
  }
  return headers
}

function bytesOf(value: BytesOrText, field: 'body' | 'headers', copy: CopyBytes): Uint8Array {
  if (typeof value === 'string') {
    const bytes = value.length <= UNBUFFERED_BYTES_MAX ? utf8(value) : copiedText(value)
    // Bytes as many as characters are ASCII.
    if (bytes.length !== value.length && !value.isWellFormed()) {
      throw invalid('a record must be valid Unicode; it has a lone surrogate', 'records')
    }
    return bytes
  }
  const what = field === 'body' ? '`body`' : 'a name or value in `headers`'
  if (value instanceof Uint8Array) {
    if (value.length > 0) return copy(value)
    try {
      // Throws if the buffer was transferred or shrunk.
      value.at(0)
      return EMPTY_BYTES
    } catch {
      throw invalid(`the buffer of ${what} was transferred or shrunk`, field)
    }
  }
  throw invalid(`${what} must be a string or a Uint8Array`, field)
}
