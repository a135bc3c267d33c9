import { utf8Length } from '../../../src/model/bytes.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { HEADER_METERED_BYTES, RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import { jsonTreeOf } from './body.ts'

/** A record to append. */
export interface TextInput {
  /** Bytes are of a record that is appended again. */
  readonly body?: string | Uint8Array | undefined
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined
  readonly timestamp?: number | undefined
}

/** Each line is the body of a record; the last one may lack its line break. */
export function recordsOfLines(text: string): TextInput[] {
  if (text === '') return []
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines.map((body) => ({ body }))
}

/**
 * Each element of a JSON array is a record: a string is its body; an object whose members are `body`,
 * `headers` and `timestamp` is the record itself; any other value becomes its JSON. Throws an error with a
 * message for people.
 */
export function recordsOfJson(text: string): TextInput[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`not JSON: ${(error as Error).message}`)
  }
  if (!Array.isArray(value)) throw new Error('must be a JSON array, such as ["first", {"id": 2}]')
  const elements = jsonTreeOf(text)?.items ?? []
  return value.map((element, index) => {
    if (typeof element === 'string') return { body: element }
    return isRecord(element) ? element : { body: elements[index]?.[1].text ?? JSON.stringify(element) }
  })
}

const MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  body: (value) => typeof value === 'string',
  headers: (value) => Array.isArray(value) && value.every(isHeader),
  timestamp: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
}

function isRecord(value: unknown): value is TextInput {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const members = Object.entries(value)
  return members.length > 0 && members.every(([name, member]) => MEMBERS[name]?.(member) === true)
}

function isHeader(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string')
}

/** The metered size of a record that is sent as text (docs/protocol.md "Metered size"). */
function meteredSize({ headers = [], body = '' }: TextInput): number {
  return headers.reduce(
    (bytes, [name, value]) => bytes + HEADER_METERED_BYTES + utf8Length(name) + utf8Length(value),
    RECORD_METERED_BYTES + (typeof body === 'string' ? utf8Length(body) : body.length),
  )
}

/** Divides records into batches within the limits of an append. Throws for a record beyond them. */
export function batchesOf(records: readonly TextInput[]): TextInput[][] {
  const batches: TextInput[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const [index, record] of records.entries()) {
    const size = meteredSize(record)
    if (size > BATCH_METERED_BYTES_MAX) {
      throw new Error(
        `record ${index + 1} has ${size} metered bytes; the limit is ${BATCH_METERED_BYTES_MAX}`,
      )
    }
    bytes += size
    if (bytes > BATCH_METERED_BYTES_MAX || batches.at(-1)!.length === BATCH_RECORDS_MAX) {
      batches.push([])
      bytes = size
    }
    batches.at(-1)!.push(record)
  }
  return batches
}

/** The placeholders of a template. */
export const PLACEHOLDERS = ['{{n}}', '{{now}}', '{{random}}'] as const

/** A record of a template: `{{n}}` counts from 1, `{{now}}` is the time, `{{random}}` is below 1,000. */
export function recordOfTemplate(
  { body = '', headers = [] }: TextInput & { readonly body?: string | undefined },
  n: number,
  now: number,
  random: number,
): TextInput {
  const values: Readonly<Record<string, string>> = {
    n: String(n),
    now: new Date(now).toISOString(),
    random: String(Math.floor(random * 1000)),
  }
  const filled = (text: string) => text.replace(/\{\{(n|now|random)\}\}/g, (_, name) => values[name]!)
  return {
    body: filled(body),
    ...(headers.length > 0 && {
      headers: headers.map(([name, value]) => [filled(name), filled(value)] as const),
    }),
  }
}
