import { inspect } from 'node:util'

/** Where something was told. */
export type Place =
  | 'answers'
  | 'answers with records'
  | 'answers to who issues'
  | 'printed'
  | 'printed at first start'
  | 'printed to who issues'
  | 'errors'
  | 'stored'
  | 'handles'

/** What must not be told, by its name. */
export type Secrets = Readonly<Record<string, string | Uint8Array>>

/** How many characters of a secret in a row give it away: fewer may be there by chance. */
const TELLING_CHARACTERS = 14
/** Of bytes as decimal numbers, which take about four characters each. */
const TELLING_CHARACTERS_OF_NUMBERS = 36

/** Collects everything that was told, to be searched. */
export class Evidence {
  /** By place each text once, with what told it first. */
  readonly #told = new Map<Place, Map<string, string>>()

  add(place: Place, what: string, value: unknown): void {
    const told = this.#told.get(place) ?? new Map<string, string>()
    this.#told.set(place, told)
    for (const text of textsOf(value).map(closedUp)) if (!told.has(text)) told.set(text, what)
  }

  /** How many different texts there are of a place. */
  count(place: Place): number {
    return this.#told.get(place)?.size ?? 0
  }

  /** Each secret that was told, where and in which form: `a key as hex in answers: GET /v1/basins`. */
  find(secrets: Secrets, places: readonly Place[] = [...this.#told.keys()]): string[] {
    const found = new Set<string>()
    const forms = Object.entries(secrets).flatMap(([name, secret]) =>
      [...needlesOf(secret)].map(([form, needles]) => ({ name: `${name} as ${form}`, needles })),
    )
    for (const place of places) {
      for (const [text, what] of this.#told.get(place) ?? []) {
        for (const { name, needles } of forms) {
          if (needles.some((needle) => text.includes(needle))) found.add(`${name} in ${place}: ${what}`)
        }
      }
    }
    return [...found]
  }
}

/** A secret in every form in which it may be told, each in several parts, for it may be told cut off. */
function needlesOf(secret: string | Uint8Array): Map<string, string[]> {
  const bytes = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret
  const buffer = Buffer.from(bytes)
  const text = buffer.toString('latin1')
  const forms: Record<string, string> = {
    text,
    'percent-encoded text': encodeURIComponent(text),
    'JSON text': JSON.stringify(text).slice(1, -1),
    base64: buffer.toString('base64').replace(/=+$/, ''),
    base64url: buffer.toString('base64url'),
    hex: buffer.toString('hex'),
    'capital hex': buffer.toString('hex').toUpperCase(),
    numbers: [...bytes].join(','),
  }
  return new Map(
    Object.entries(forms).map(([form, whole]) => {
      const length = form === 'numbers' ? TELLING_CHARACTERS_OF_NUMBERS : TELLING_CHARACTERS
      return [form, partsOf(closedUp(whole), length)]
    }),
  )
}

/** Its parts, half overlapping: what holds one and a half times their length in a row holds one of them. */
function partsOf(text: string, length: number): string[] {
  if (text.length < length) throw new RangeError(`too short to be searched for: ${text.length} characters`)
  const parts: string[] = []
  for (let at = 0; at + length <= text.length; at += length / 2) parts.push(text.slice(at, at + length))
  return parts
}

/** Without white space, which what prints bytes puts between them. */
function closedUp(text: string): string {
  return text.replace(/[\s\0]+/g, '')
}

/** A value as whoever logs it would see it. */
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

/** With the members that errors hide, and bytes as characters. */
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
    // What goes round in a circle was inspected.
    return ''
  }
}
