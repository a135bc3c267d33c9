import { inspect } from 'node:util'

/** Where a text was disclosed. */
export type Place = 'answers' | 'answers with records' | 'printed' | 'errors' | 'stored' | 'handles'

/** Secrets by name. */
export type Secrets = Readonly<Record<string, string | Uint8Array>>

/** The number of consecutive characters of a secret that count as a disclosure. Fewer may occur by chance. */
const DISCLOSED_CHARACTERS = 14

/** Collects all disclosed texts and searches them. */
export class Evidence {
  /** Each distinct text once per place, with its first source. */
  readonly #texts = new Map<Place, Map<string, string>>()

  add(place: Place, source: string, value: unknown): void {
    const texts = this.#texts.get(place) ?? new Map<string, string>()
    this.#texts.set(place, texts)
    for (const text of textsOf(value).map(withoutWhitespace)) if (!texts.has(text)) texts.set(text, source)
  }

  /** The number of distinct texts of a place. */
  count(place: Place): number {
    return this.#texts.get(place)?.size ?? 0
  }

  /** Each disclosed secret with its place and form: `a key as hex in answers: GET /v1/basins`. */
  find(secrets: Secrets, places: readonly Place[] = [...this.#texts.keys()]): string[] {
    const found = new Set<string>()
    const forms = Object.entries(secrets).flatMap(([name, secret]) =>
      [...searchPartsOf(secret)].map(([form, parts]) => ({ name: `${name} as ${form}`, needles: parts })),
    )
    for (const place of places) {
      for (const [text, source] of this.#texts.get(place) ?? []) {
        for (const { name, needles: parts } of forms) {
          if (parts.some((part) => text.includes(part))) found.add(`${name} in ${place}: ${source}`)
        }
      }
    }
    return [...found]
  }
}

/**
 * A secret in every form in which it may be disclosed, each in several parts, because it may be truncated.
 */
function searchPartsOf(secret: string | Uint8Array): Map<string, string[]> {
  const bytes = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret
  const buffer = Buffer.from(bytes)
  const text = buffer.toString('latin1')
  const characters: Record<string, string> = {
    text: withoutWhitespace(text),
    base64: buffer.toString('base64').replace(/=+$/, ''),
    base64url: buffer.toString('base64url'),
    hex: buffer.toString('hex'),
    'capital hex': buffer.toString('hex').toUpperCase(),
  }
  // A byte takes several characters in these, so that the parts are cut before they are encoded.
  const escaped: Record<string, (part: string) => string> = {
    'percent-encoded text': encodeURIComponent,
    'JSON text': (part) => JSON.stringify(part).slice(1, -1),
    numbers: (part) => [...Buffer.from(part, 'latin1')].join(','),
  }
  return new Map([
    ...Object.entries(characters).map(([form, whole]) => [form, partsOf(whole)] as const),
    ...Object.entries(escaped).map(
      ([form, encode]) => [form, partsOf(text).map((part) => withoutWhitespace(encode(part)))] as const,
    ),
  ])
}

/** Overlapping parts: any consecutive text of one and a half times their length contains one. */
function partsOf(text: string): string[] {
  const length = DISCLOSED_CHARACTERS
  if (text.length < length) throw new RangeError(`too short to be searched for: ${text.length} characters`)
  const parts: string[] = []
  for (let start = 0; start + length <= text.length; start += length / 2)
    parts.push(text.slice(start, start + length))
  return parts
}

/** Without white space, which separates printed bytes. */
function withoutWhitespace(text: string): string {
  return text.replace(/[\s\0]+/g, '')
}

/** A value as a logger would print it. */
function textsOf(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (value instanceof Uint8Array) return [Buffer.from(value).toString('latin1')]
  const whole = { depth: null, showHidden: true, maxArrayLength: null, maxStringLength: null, getters: true }
  const texts = [inspect(value), inspect(value, whole), asJson(value), String(value)]
  if (value instanceof Error) {
    texts.push(value.message, value.stack ?? '')
    const reasons = [value.cause, ...(value instanceof AggregateError ? value.errors : [])]
    // Errors may be each other's cause.
    if (depth < 10) texts.push(...reasons.filter(Boolean).flatMap((reason) => textsOf(reason, depth + 1)))
  }
  return texts
}

/** Includes the hidden members of errors, and bytes as characters. */
function asJson(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_, member: unknown) => {
        if (member instanceof Uint8Array) return Buffer.from(member).toString('latin1')
        if (member instanceof Error) {
          return Object.fromEntries(
            Object.getOwnPropertyNames(member).map((name) => [name, Reflect.get(member, name)]),
          )
        }
        return typeof member === 'bigint' ? `${member}` : member
      }) ?? ''
    )
  } catch {
    // Circular values were inspected above.
    return ''
  }
}
