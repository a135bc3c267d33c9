import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { type JsonNode, jsonTreeOf } from './json-text.ts'
import { compares, parseQuery, type Query } from './query.ts'

/** Returns a function that tells whether a query selects a record. */
export function matcherOf(query: Query): (record: SequencedRecord) => boolean {
  return (record) => selects(query, new RecordText(record))
}

/** A record as text, decoded and parsed once however many terms ask for it. */
class RecordText {
  readonly record: SequencedRecord
  #body: string | undefined
  #headers: readonly (readonly [name: string, value: string])[] | undefined
  #json: JsonNode | null | undefined

  constructor(record: SequencedRecord) {
    this.record = record
  }

  get body(): string {
    this.#body ??= lossyTextOf(this.record.body)
    return this.#body
  }

  get headers(): readonly (readonly [name: string, value: string])[] {
    this.#headers ??= this.record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)])
    return this.#headers
  }

  /** Null if the body is not JSON. */
  get json(): JsonNode | null {
    if (this.#json === undefined) this.#json = jsonTreeOf(this.body) ?? null
    return this.#json
  }
}

function selects(query: Query, text: RecordText): boolean {
  switch (query.kind) {
    case 'all':
      return query.of.every((one) => selects(one, text))
    case 'any':
      return query.of.some((one) => selects(one, text))
    case 'not':
      return !selects(query.of, text)
    case 'text':
      return contains(text, query.text.toLowerCase())
    case 'value': {
      const { operator, value } = query
      const values = valuesOf(query, text)
      return operator === undefined ? values.length > 0 : values.some((one) => compares(one, operator, value))
    }
  }
}

/** Whether the body, or a header as the page shows it, contains a text in lower case. */
function contains({ body, headers }: RecordText, needle: string): boolean {
  if (body.toLowerCase().includes(needle)) return true
  return headers.some(([name, value]) => `${name}=${value}`.toLowerCase().includes(needle))
}

/** The values that a term is about, as text: headers may have several of a name. */
function valuesOf({ of, path }: Query & { readonly kind: 'value' }, text: RecordText): readonly string[] {
  if (of === 'header') return text.headers.flatMap(([name, value]) => (name === path[0] ? [value] : []))
  if (of === 'json') {
    const node = text.json === null ? undefined : nodeAt(text.json, path)
    return node === undefined ? [] : [textOfNode(node)]
  }
  const { seqNum, timestamp, body, command } = text.record
  if (path[0] === 'command') return command === undefined ? [] : [command.kind]
  return [String({ seq: seqNum, time: timestamp, size: body.length }[path[0] as 'seq'])]
}

/** The value of a record that a column shows: that of a path of JSON, or of a header. */
export function columnValue(column: string, record: SequencedRecord): string {
  const query = parseColumn(column)
  return valuesOf(query, new RecordText(record)).join(', ')
}

function parseColumn(column: string): Query & { readonly kind: 'value' } {
  const header = { kind: 'value', of: 'header', path: [column], operator: undefined, value: '' } as const
  try {
    const query = parseQuery(column)
    return query.kind === 'value' ? query : header
  } catch {
    return header
  }
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
