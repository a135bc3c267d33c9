import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { type JsonNode, jsonTreeOf } from './body.ts'

/** A term of a query; all terms of a query must hold. */
type Term =
  /** The body, or a header as `name=value`, contains the text, in any case. */
  | { readonly kind: 'text'; readonly text: string }
  /** A header, or a value within a JSON body, exists, or compares as stated. */
  | {
      readonly kind: 'header' | 'json'
      readonly path: readonly (string | number)[]
      readonly operator: Operator | undefined
      readonly value: string
    }

/** The relation of a value of a record to that of a term; `~` is "contains, in any case". */
type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | '~'

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`
/** Anything up to a space outside quotation marks. */
const WORD = new RegExp(String.raw`(?:${QUOTED}|[^\s"])+`, 'gs')
const COMPARISON = new RegExp(`^((?:${QUOTED}|[^"=!<>~])+)(?:(!=|<=|>=|[=<>~])(.*))?$`, 's')
const STEP = String.raw`\.(?:${QUOTED}|[^\s".[\]]+)|\.?\[\d+\]`
const PATH = new RegExp(`^(?:${STEP})+$`, 's')

/**
 * Parses a query: terms separated by spaces, such as `text`, `"a text"`, `tenant=t3` (a header) and
 * `.items[0].total>=5` (a value within a JSON body), with `=`, `!=`, `<`, `<=`, `>`, `>=` and `~` for
 * "contains". Throws an error with a message for people.
 */
export function parseQuery(query: string): readonly Term[] {
  if (query.replace(WORD, '').includes('"')) throw new Error('a quotation mark is missing')
  return wordsOf(query).map(termOf)
}

/** The words of a text, which keep their quotation marks. */
export function wordsOf(text: string): readonly string[] {
  return text.match(WORD) ?? []
}

function termOf(word: string): Term {
  const [, name = '', operator, value = ''] = COMPARISON.exec(word) ?? []
  const compared = { operator: operator as Operator | undefined, value: unquoted(value) }
  if (PATH.test(name) || (name === '.' && operator !== undefined)) {
    return { kind: 'json', path: stepsOf(name), ...compared }
  }
  if (operator === undefined) return { kind: 'text', text: unquoted(word) }
  return { kind: 'header', path: [unquoted(name)], ...compared }
}

function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(new RegExp(STEP, 'gs'))].map(([step]) => {
    const [, index] = /^\.?\[(\d+)\]$/.exec(step) ?? []
    return index === undefined ? unquoted(step.slice(1)) : Number(index)
  })
}

/** A text without quotation marks, and without the backslashes between them. */
function unquoted(text: string): string {
  return text.replace(new RegExp(QUOTED, 'gs'), (quoted) => quoted.slice(1, -1).replace(/\\(.)/gs, '$1'))
}

/** A text as a word of a query: in quotation marks if it needs them. */
export function quotedTerm(text: string): string {
  return /^[^\s"=!<>~.[\]]+$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** A path as queries and columns write it: `.items[0]."a name"`. */
export function pathText(path: readonly (string | number)[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${quotedTerm(step)}`))
  return steps.join('').replace(/^(?=\[|$)/, '.')
}

/** Returns a function that tells whether all terms select a record. */
export function matcherOf(terms: readonly Term[]): (record: SequencedRecord) => boolean {
  const readsJson = terms.some(({ kind }) => kind === 'json')
  return (record) => {
    const text = recordTextOf(record, readsJson)
    return terms.every((term) => holds(term, text))
  }
}

/** The value of a record that a column shows: that of a path within JSON, or of a header. */
export function columnValue(column: string, record: SequencedRecord): string {
  const term = termOf(column)
  const isJson = term.kind === 'json'
  const path = isJson ? term.path : [unquoted(column)]
  return valuesOf(isJson ? 'json' : 'header', path, recordTextOf(record, isJson)).join(', ')
}

/** A record as text. */
interface RecordText {
  readonly body: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Undefined if the body is not JSON, or is not read as JSON. */
  readonly json: JsonNode | undefined
}

function recordTextOf(record: SequencedRecord, readsJson: boolean): RecordText {
  const body = lossyTextOf(record.body)
  const headers = record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const)
  return { body, headers, json: readsJson ? jsonTreeOf(body) : undefined }
}

function holds(term: Term, text: RecordText): boolean {
  if (term.kind === 'text') {
    const needle = term.text.toLowerCase()
    const parts = [text.body, ...text.headers.map(([name, value]) => `${name}=${value}`)]
    return parts.some((part) => part.toLowerCase().includes(needle))
  }
  const { operator, value } = term
  const values = valuesOf(term.kind, term.path, text)
  if (operator === undefined) return values.length > 0
  if (operator === '!=') return !values.some((one) => compares(one, '=', value))
  return values.some((one) => compares(one, operator, value))
}

/** The values of a header, which may have several, or that of a path within JSON, as text. */
function valuesOf(
  kind: 'header' | 'json',
  path: readonly (string | number)[],
  { headers, json }: RecordText,
): readonly string[] {
  if (kind === 'header') return headers.flatMap(([name, value]) => (name === path[0] ? [value] : []))
  const node = json && nodeAt(json, path)
  return node === undefined ? [] : [textOfNode(node)]
}

/** The value at a path within JSON; undefined if there is none. Of members of a name, the last one counts. */
function nodeAt(node: JsonNode, path: readonly (string | number)[]): JsonNode | undefined {
  let at: JsonNode | undefined = node
  for (const step of path) {
    const items: JsonNode['items'] = at?.items
    if (typeof step === 'string') at = items?.findLast(([name]) => name === step)?.[1]
    else at = items?.[step]?.[0] === undefined ? items?.[step]?.[1] : undefined
  }
  return at
}

/** A string without its quotation marks, anything else as it is written. */
export function textOfNode({ text, items }: JsonNode): string {
  if (items !== undefined) return text
  return text[0] === '"' ? (JSON.parse(text) as string) : text
}

const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i
const INTEGER = /^-?\d+$/

/** Compares as numbers if both are, integers exactly, else as text by code units. */
export function compares(value: string, operator: Exclude<Operator, '!='>, other: string): boolean {
  if (operator === '~') return value.toLowerCase().includes(other.toLowerCase())
  const [a, b] = comparable(value, other)
  if (operator === '=') return a === b
  return operator[0] === '<'
    ? a < b || (operator === '<=' && a === b)
    : a > b || (operator === '>=' && a === b)
}

function comparable(a: string, b: string): readonly [string | number | bigint, string | number | bigint] {
  if (INTEGER.test(a) && INTEGER.test(b)) return [BigInt(a), BigInt(b)]
  return NUMBER.test(a) && NUMBER.test(b) ? [Number(a), Number(b)] : [a, b]
}
