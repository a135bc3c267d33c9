import type { AppendConditions, AppendInput, RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import { fencingTokenProblem } from '../model/names.ts'
import { decodeBase64 } from './base64.ts'
import type { DataFormat } from './headers.ts'
import { arrayOf, integerOf, nullable, objectOf, optional, required, stringOf } from './json-members.ts'
import { badJson, isEscaped, jsonText, type ParsedJson, readJsonText } from './json-reader.ts'
import { positionJson } from './json-records.ts'

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

/** A record before its strings are decoded. */
interface TextInput {
  readonly body: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly timestamp: number | undefined
}

/** An append before its strings are decoded. */
interface TextAppend {
  readonly inputs: readonly TextInput[]
  readonly conditions: AppendConditions
}

/** Decodes any append. Throws 400 `bad_json`. */
function decodeAppendText(text: string): TextAppend {
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

/** `JSON.parse` needs many times the length of a document that consists of tiny objects. */
const CHARACTERS_MAX = 65_536

const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/
/** A number that is not an integer from 0. */
const OTHER_NUMBER = /-|[0-9]+[.eE]/y
const WHITE_SPACE = /[ \t\r\n]*/y

/**
 * Decodes an append with `JSON.parse`, which is faster than `decodeAppendText` and has the same result.
 * Returns undefined if the document is long, invalid, or one that `JSON.parse` would round, merge or accept
 * by mistake.
 */
function decodePlainAppend(text: string): TextAppend | undefined {
  if (text.length > CHARACTERS_MAX) return undefined
  if (text.includes('\\') && ESCAPED_SURROGATE.test(text)) return undefined
  const names = countNames(text)
  if (names === undefined) return undefined
  let root: Record<string, unknown>
  try {
    root = JSON.parse(text) ?? {}
  } catch {
    return undefined
  }
  const { records, match_seq_num: matchSeqNum, fencing_token: fencingToken } = root
  if (!Array.isArray(records) || records.length > BATCH_RECORDS_MAX) return undefined
  if (matchSeqNum != null && !Number.isSafeInteger(matchSeqNum)) return undefined
  if (fencingToken != null && !isFencingToken(fencingToken)) return undefined
  const inputs: TextInput[] = []
  let members = Object.keys(root).length
  for (const record of records) {
    const input = plainInput(record)
    if (input === undefined) return undefined
    inputs.push(input)
    const size = Object.keys(record).length
    // Rejected by `decodeAppendText`.
    if (size > 0 && !('body' in record || 'headers' in record || 'timestamp' in record)) return undefined
    members += size
  }
  // `JSON.parse` drops all but the last of several members with one name.
  if (members !== names) return undefined
  const conditions = {
    matchSeqNum: (matchSeqNum as number | null) ?? undefined,
    fencingToken: (fencingToken as string | null) ?? undefined,
  }
  return { inputs, conditions }
}

const SPACE = 0x20
const HYPHEN = 0x2d
const NINE = 0x39
const COLON = 0x3a

/**
 * Counts the names of members, and some strings. Undefined if a value, or what follows such a string, is a
 * number but not an integer from 0.
 */
function countNames(text: string): number | undefined {
  const hasEscapes = text.includes('\\')
  let count = 0
  for (let quote = text.indexOf('"'); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    const colon = text.charCodeAt(quote + 1) <= SPACE ? afterSpace(text, quote + 1) : quote + 1
    if (text.charCodeAt(colon) !== COLON || (hasEscapes && isEscaped(text, quote))) continue
    count++
    const value = text.charCodeAt(colon + 1) <= SPACE ? afterSpace(text, colon + 1) : colon + 1
    const code = text.charCodeAt(value)
    if (code < HYPHEN || code > NINE) continue
    OTHER_NUMBER.lastIndex = value
    if (OTHER_NUMBER.test(text)) return undefined
  }
  return count
}

function afterSpace(text: string, start: number): number {
  WHITE_SPACE.lastIndex = start
  WHITE_SPACE.test(text)
  return WHITE_SPACE.lastIndex
}

function plainInput(record: unknown): TextInput | undefined {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return undefined
  const { timestamp, headers = [], body = '' } = record as Record<string, unknown>
  if (timestamp != null && !Number.isSafeInteger(timestamp)) return undefined
  if (!Array.isArray(headers) || typeof body !== 'string' || !headers.every(isHeaderPair)) return undefined
  return { timestamp: (timestamp as number | null) ?? undefined, headers, body }
}

function isHeaderPair(header: unknown): boolean {
  return (
    Array.isArray(header) &&
    header.length === 2 &&
    typeof header[0] === 'string' &&
    typeof header[1] === 'string'
  )
}

function isFencingToken(value: unknown): boolean {
  return typeof value === 'string' && fencingTokenProblem(value) === undefined
}
