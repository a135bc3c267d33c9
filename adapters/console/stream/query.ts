import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { type JsonNode, jsonTreeOf } from './body.ts'

/** A term of a query; all terms of a query must hold. */
export type Term =
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

/** A word in quotation marks, or without any of these characters. */
const WORD = String.raw`"(?:[^"\\]|\\.)*"|[^\s"=!<>~]+`
const STEP = String.raw`\.(?:"(?:[^"\\]|\\.)*"|[^\s"=!<>~.[\]]+)|\.?\[\d+\]`
const TERM = new RegExp(
  String.raw`\s*(?:(?<path>(?:${STEP})+|\.(?=[=!<>~]))|(?<word>${WORD}))?(?:(?<operator>!=|<=|>=|[=<>~])(?<value>"(?:[^"\\]|\\.)*"|[^\s"]*))?`,
  'y',
)

/**
 * Parses a query: terms separated by spaces, such as `text`, `"a text"`, `tenant=t3` (a header) and
 * `.items[0].total>=5` (a value within a JSON body), with `=`, `!=`, `<`, `<=`, `>`, `>=` and `~` for
 * "contains". Throws an error with a message for people.
 */
export function parseQuery(query: string): readonly Term[] {
  const text = query.trim()
  const terms: Term[] = []
  TERM.lastIndex = 0
  while (TERM.lastIndex < text.length) {
    const at = TERM.lastIndex
    const { path, word, operator, value } = TERM.exec(text)?.groups ?? {}
    if (TERM.lastIndex <= at) throw new Error('a quotation mark is missing')
    terms.push(termOf(path, word, operator as Operator | undefined, value))
  }
  return terms
}

function termOf(
  path: string | undefined,
  word: string | undefined,
  operator: Operator | undefined,
  value = '',
): Term {
  const compared = { operator, value: unquoted(value) }
  if (path !== undefined) return { kind: 'json', path: stepsOf(path), ...compared }
  if (word === undefined) return { kind: 'text', text: `${operator}${value}` }
  if (operator === undefined) return { kind: 'text', text: unquoted(word) }
  return { kind: 'header', path: [unquoted(word)], ...compared }
}

function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(new RegExp(STEP, 'g'))].map(([step]) => {
    const index = /^\.?\[(\d+)\]$/.exec(step)
    return index === null ? unquoted(step.slice(1)) : Number(index[1])
  })
}

function unquoted(text: string): string {
  return text[0] === '"' ? text.slice(1, -1).replace(/\\(.)/gs, '$1') : text
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
  return (record) => {
    const text = new RecordText(record)
    return terms.every((term) => holds(term, text))
  }
}

/** The value of a record that a column shows: that of a path within JSON, or of a header. */
export function columnValue(column: string, record: SequencedRecord): string {
  const [term] = column[0] === '.' ? parseQuery(column) : []
  const shown: Term =
    term?.kind === 'json' ? term : { kind: 'header', path: [column], operator: undefined, value: '' }
  return valuesOf(shown, new RecordText(record)).join(', ')
}

/** A record as text, decoded and parsed once however many terms ask for it. */
class RecordText {
  readonly #record: SequencedRecord
  #body: string | undefined
  #headers: readonly (readonly [name: string, value: string])[] | undefined
  #json: JsonNode | null | undefined

  constructor(record: SequencedRecord) {
    this.#record = record
  }

  get body(): string {
    this.#body ??= lossyTextOf(this.#record.body)
    return this.#body
  }

  get headers(): readonly (readonly [name: string, value: string])[] {
    this.#headers ??= this.#record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)])
    return this.#headers
  }

  /** Null if the body is not JSON. */
  get json(): JsonNode | null {
    if (this.#json === undefined) this.#json = jsonTreeOf(this.body) ?? null
    return this.#json
  }
}

function holds(term: Term, text: RecordText): boolean {
  if (term.kind === 'text') {
    const needle = term.text.toLowerCase()
    const parts = [text.body, ...text.headers.map(([name, value]) => `${name}=${value}`)]
    return parts.some((part) => part.toLowerCase().includes(needle))
  }
  const { operator, value } = term
  const values = valuesOf(term, text)
  if (operator === undefined) return values.length > 0
  if (operator === '!=') return !values.some((one) => compares(one, '=', value))
  return values.some((one) => compares(one, operator, value))
}

/** The values that a term is about, as text: headers may have several of a name. */
function valuesOf({ kind, path }: Exclude<Term, { kind: 'text' }>, text: RecordText): readonly string[] {
  if (kind === 'header') return text.headers.flatMap(([name, value]) => (name === path[0] ? [value] : []))
  const node = text.json === null ? undefined : nodeAt(text.json, path)
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
