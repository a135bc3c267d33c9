import type { RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import { fencingTokenProblem } from '../model/fencing-token.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import { decodeBase64 } from './base64.ts'
import type { DataFormat } from './data-format.ts'
import type { DecodedAppend } from './decoded-append.ts'
import { arrayOf, integerOf, nullable, objectOf, optional, required, stringOf } from './json-members.ts'
import { positionJson } from './json-position.ts'
import { readJson } from './json-reader.ts'
import { badJson, type ParsedJson } from './json-values.ts'

interface TextInput {
  readonly body: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly timestamp: number | undefined
}

/**
 * Decodes the JSON form of `AppendInput` (wire-behaviour.md 3.1). Throws 400 `bad_json` for anything of a wrong shape, then 422
 * `invalid` for base64 that is none. A timestamp or `match_seq_num` beyond 2^53 - 1 comes out as `Infinity`, which `appendBatch`
 * refuses with 422 `invalid`.
 */
export function decodeAppendJson(bytes: Uint8Array, format: DataFormat): DecodedAppend {
  const root = objectOf(readJson(bytes), 'append input')
  const inputs = textInputs(required(root, 'records', arrayOf))
  const conditions = {
    matchSeqNum: nullable(root, 'match_seq_num', integerOf),
    fencingToken: nullable(root, 'fencing_token', fencingToken),
  }
  return { inputs: format === 'raw' ? inputs : inputs.map(binaryInput), conditions }
}

export function appendAckJson(ack: AppendAck): string {
  return `{"start":${positionJson(ack.start)},"end":${positionJson(ack.end)},"tail":${positionJson(ack.tail)}}`
}

const NO_HEADERS: TextInput['headers'] = []

/** All are checked, but of a batch that is far too long only as many are kept as `appendBatch` needs to refuse it. */
function textInputs(values: readonly ParsedJson[]): TextInput[] {
  const inputs: TextInput[] = []
  for (const value of values) {
    const input = textInput(value)
    if (inputs.length <= BATCH_RECORDS_MAX) inputs.push(input)
  }
  return inputs
}

function textInput(value: ParsedJson): TextInput {
  const record = objectOf(value, 'record')
  return {
    timestamp: nullable(record, 'timestamp', integerOf),
    headers: optional(record, 'headers', arrayOf)?.map(headerPair) ?? NO_HEADERS,
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
