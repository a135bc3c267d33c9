import type { AppendConditions } from '../model/append-input.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import { fencingTokenProblem } from '../model/names.ts'
import { isEscaped } from './json-reader.ts'

/** A record before its strings are decoded. */
export interface TextInput {
  readonly body: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly timestamp: number | undefined
}

/** An append before its strings are decoded. */
export interface TextAppend {
  readonly inputs: readonly TextInput[]
  readonly conditions: AppendConditions
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
export function decodePlainAppend(text: string): TextAppend | undefined {
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
