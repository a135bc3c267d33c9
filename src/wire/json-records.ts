import type { AppendInput, BytesOrText, RecordInput } from '../model/append-input.ts'
import { decodeBase64, EMPTY_BYTES, encodeBase64, lossyTextOf } from '../model/bytes.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import { fencingTokenProblem } from '../model/names.ts'
import type { StreamTail } from '../model/position.ts'
import { type SequencedRecord, sequencedRecord } from '../model/record.ts'
import type { ReadBatch, ReceivedBatch } from '../storage/record-batch.ts'
import type { DataFormat } from './headers.ts'
import {
  arrayOf,
  integerOf,
  type JsonObject,
  Malformed,
  nameOf,
  nullable,
  objectOf,
  type Reader,
  readJson,
  required,
  safeIntegerOf,
  stringOf,
} from './json.ts'

/** Records and positions as JSON, at both ends of the protocol. */

/**
 * Decodes the JSON form of `AppendInput` (docs/protocol.md "Append request"). Throws 400 `bad_json` for an
 * invalid form, then 422 `invalid` for invalid base64. A timestamp or `match_seq_num` beyond 2^53 - 1 becomes
 * `Infinity`, which `appendBatch` rejects.
 */
export function decodeAppendJson(bytes: Uint8Array, format: DataFormat): AppendInput {
  const append = objectOf(readJson(bytes), 'append input')
  const inputs: RecordInput[] = []
  let invalidField: string | undefined
  const contentOf: Reader<BytesOrText> = (value, name) => {
    const text = stringOf(value, name)
    if (format === 'raw') return text
    const decoded = decodeBase64(text)
    if (decoded === undefined) invalidField ??= name
    return decoded ?? EMPTY_BYTES
  }
  for (const record of required(append, 'records', arrayOf)) {
    const input = recordInputOf(record, contentOf)
    // All are checked, but only one more than the limit of a batch is kept, for `appendBatch` to reject.
    if (inputs.length <= BATCH_RECORDS_MAX) inputs.push(input)
  }
  const conditions = {
    matchSeqNum: nullable(append, 'match_seq_num', integerOf),
    fencingToken: nullable(append, 'fencing_token', fencingTokenOf),
  }
  if (invalidField !== undefined) throw invalid('invalid Base64 encoding', invalidField)
  return { inputs, conditions }
}

function recordInputOf(value: unknown, contentOf: Reader<BytesOrText>): RecordInput {
  const record = objectOf(value, 'record')
  const { body, headers, timestamp } = record
  const isEmpty = body === undefined && headers === undefined && timestamp === undefined
  if (isEmpty && Object.keys(record).length > 0) {
    throw new Malformed('a record has none of the members `body`, `headers` and `timestamp`', 'records')
  }
  return {
    body: body === undefined ? '' : contentOf(body, 'body'),
    headers: headers === undefined ? [] : arrayOf(headers, 'headers').map((one) => headerOf(one, contentOf)),
    timestamp: timestamp === undefined || timestamp === null ? undefined : integerOf(timestamp, 'timestamp'),
  }
}

function headerOf<Content>(value: unknown, contentOf: Reader<Content>): readonly [Content, Content] {
  const header = arrayOf(value, 'headers')
  if (header.length !== 2) throw new Malformed('a header must be an array of exactly 2 strings', 'headers')
  return [contentOf(header[0], 'headers'), contentOf(header[1], 'headers')]
}

const fencingTokenOf = nameOf(fencingTokenProblem)

/** `{"seq_num":…,"timestamp":…}` (docs/protocol.md "Stream position"). */
export function positionJson({ seqNum, timestamp, closed }: StreamTail): string {
  return `{"seq_num":${seqNum},"timestamp":${timestamp}${closed ? ',"closed":true' : ''}}`
}

export function positionOf(value: unknown): StreamTail {
  const { seq_num, timestamp, closed } = objectOf(value, 'position')
  const position = {
    seqNum: safeIntegerOf(seq_num, 'seq_num'),
    timestamp: safeIntegerOf(timestamp, 'timestamp'),
  }
  return closed === true ? { ...position, closed } : position
}

export function appendAckJson({ start, end, tail }: AppendAck): string {
  return `{"start":${positionJson(start)},"end":${positionJson(end)},"tail":${positionJson(tail)}}`
}

/** The response to a tail check, and the body of a 416. */
export function tailJson(tail: StreamTail): string {
  return `{"tail":${positionJson(tail)}}`
}

/** The data of a `ping` event; `timestamp` is when it was emitted, in milliseconds. */
export function pingJson(timestamp: number, tail: StreamTail): string {
  return `{"timestamp":${timestamp},"tail":${positionJson(tail)}}`
}

type TextOf = (bytes: Uint8Array) => string

const TEXT_OF: Record<DataFormat, TextOf> = { raw: lossyTextOf, base64: encodeBase64 }

/**
 * The JSON form of a batch (docs/protocol.md "Unary reads"), made once for each batch and format. Empty
 * `headers` and `body` and an absent `tail` are omitted. In raw format, bytes that are not UTF-8 become
 * U+FFFD.
 */
export function readBatchJson(batch: ReadBatch, format: DataFormat): string {
  const textOf = TEXT_OF[format]
  return batch.encoding(format, () => {
    const { records, tail } = batch
    return JSON.stringify({
      records: records.map((record) => recordForm(record, textOf)),
      tail: tail && { seq_num: tail.seqNum, timestamp: tail.timestamp, closed: tail.closed },
    })
  })
}

/** The order of the members is their order on the wire. */
function recordForm({ seqNum, timestamp, headers, body }: SequencedRecord, textOf: TextOf): object {
  return {
    seq_num: seqNum,
    timestamp,
    headers: headers.length === 0 ? undefined : headers.map(([name, value]) => [textOf(name), textOf(value)]),
    body: body.length === 0 ? undefined : textOf(body),
  }
}

/** Reads the JSON form of a batch whose strings are base64. */
export function readBatchOf(value: unknown): ReceivedBatch {
  const batch = objectOf(value, 'batch')
  const records = required(batch, 'records', arrayOf)
  if (records.length > READ_RECORDS_MAX) throw tooManyRecords()
  return {
    records: records.map((record) => recordOf(objectOf(record, 'record'))),
    tail: nullable(batch, 'tail', positionOf),
  }
}

/** The problem of a batch that no server sends. */
export function tooManyRecords(): Malformed {
  return new Malformed(`a batch has more than ${READ_RECORDS_MAX} records`)
}

function recordOf({ seq_num, timestamp, headers, body }: JsonObject): SequencedRecord {
  return sequencedRecord(
    safeIntegerOf(seq_num, 'seq_num'),
    safeIntegerOf(timestamp, 'timestamp'),
    arrayOf(headers ?? [], 'headers').map((header) => headerOf(header, base64Of)),
    base64Of(body ?? '', 'body'),
  )
}

function base64Of(value: unknown, name: string): Uint8Array {
  const bytes = decodeBase64(stringOf(value, name))
  if (bytes === undefined) throw new Malformed(`\`${name}\` is not base64`, name)
  return bytes
}
