import type { AppendInput, RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import { fencingTokenProblem } from '../model/names.ts'
import { decodeBase64 } from './base64.ts'
import { arrayOf, integerOf, nullable, objectOf, optional, required, stringOf } from './json-members.ts'
import { badJson, jsonText, type ParsedJson, readJsonText } from './json-reader.ts'
import { positionJson } from './json-records.ts'
import { decodePlainAppend, type TextAppend, type TextInput } from './plain-append.ts'
import type { DataFormat } from './vendor-headers.ts'

/**
 * Decodes the JSON form of `AppendInput` (docs/protocol.md "Append request"). Throws 400 `bad_json` for an
 * invalid form, then 422 `invalid` for invalid base64. A timestamp or `match_seq_num` beyond 2^53 - 1 becomes
 * `Infinity`, which `appendBatch` rejects.
 */
export function decodeAppendJson(bytes: Uint8Array, format: DataFormat): AppendInput {
  const text = jsonText(bytes)
  const append = decodePlainAppend(text) ?? decodeAppendText(text)
  return format === 'raw' ? append : { ...append, inputs: append.inputs.map(binaryInput) }
}

/** Decodes any append. Throws 400 `bad_json`. */
export function decodeAppendText(text: string): TextAppend {
  const root = objectOf(readJsonText(text), 'append input')
  const inputs = textInputs(required(root, 'records', arrayOf))
  const conditions = {
    matchSeqNum: nullable(root, 'match_seq_num', integerOf),
    fencingToken: nullable(root, 'fencing_token', fencingToken),
  }
  return { inputs, conditions }
}

/** The JSON form of an ack. */
export function appendAckJson(ack: AppendAck): string {
  return `{"start":${positionJson(ack.start)},"end":${positionJson(ack.end)},"tail":${positionJson(ack.tail)}}`
}

/** Checks all records, but keeps only one more than the limit of a batch, for `appendBatch` to reject. */
function textInputs(values: readonly ParsedJson[]): TextInput[] {
  const inputs: TextInput[] = []
  for (const value of values) {
    const input = textInput(value)
    if (inputs.length <= BATCH_RECORDS_MAX) inputs.push(input)
  }
  return inputs
}

const RECORD_MEMBERS = ['body', 'headers', 'timestamp']

function textInput(value: ParsedJson): TextInput {
  const record = objectOf(value, 'record')
  if (record.size > 0 && !RECORD_MEMBERS.some((name) => record.get(name) !== undefined)) {
    throw badJson('a record has none of the members `body`, `headers` and `timestamp`', 'records')
  }
  return {
    timestamp: nullable(record, 'timestamp', integerOf),
    headers: optional(record, 'headers', arrayOf)?.map(headerPair) ?? [],
    body: optional(record, 'body', stringOf) ?? '',
  }
}

function headerPair(value: ParsedJson): readonly [string, string] {
  const pair = arrayOf(value, 'headers')
  if (pair.length !== 2) throw badJson('a header must be an array of exactly 2 strings', 'headers')
  return [stringOf(pair[0]!, 'headers'), stringOf(pair[1]!, 'headers')]
}

function fencingToken(value: ParsedJson, name: string): string {
  const token = stringOf(value, name)
  const problem = fencingTokenProblem(token)
  if (problem !== undefined) throw badJson(problem, name)
  return token
}

function binaryInput({ body, headers, timestamp }: TextInput): RecordInput {
  return {
    timestamp,
    headers: headers.map(([name, value]) => [binary(name, 'headers'), binary(value, 'headers')]),
    body: binary(body, 'body'),
  }
}

function binary(text: string, field: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw invalid('invalid Base64 encoding', field)
  return bytes
}
