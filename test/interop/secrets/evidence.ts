import { inspect } from 'node:util'
import { onTestFinished, vi } from 'vitest'

/** Where a text was disclosed. */
export type Place = 'answers' | 'answers with records' | 'printed' | 'errors' | 'stored' | 'handles'

/** Every place where no secret may be. */
export const EVERYWHERE: readonly Place[] = ['answers', 'printed', 'errors', 'stored', 'handles']

/** Secrets by name. */
type Secrets = Readonly<Record<string, string | Uint8Array>>

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

  /** Each disclosed secret with its place: `a key in answers: GET /v1/basins`. */
  find(secrets: Secrets, places: readonly Place[] = [...this.#texts.keys()]): string[] {
    const found = new Set<string>()
    const sought = Object.entries(secrets).map(([name, secret]) => ({ name, needles: needlesOf(secret) }))
    for (const place of places) {
      for (const [text, source] of this.#texts.get(place) ?? []) {
        for (const { name, needles } of sought) {
          if (needles.some((part) => text.includes(part))) found.add(`${name} in ${place}: ${source}`)
        }
      }
    }
    return [...found]
  }
}

/** Collects for one test, with everything that the process prints. */
export function evidenceOfTest(): Evidence {
  const evidence = new Evidence()
  const spies = (['log', 'info', 'warn', 'error', 'debug', 'trace'] as const).map((method) =>
    vi.spyOn(console, method).mockImplementation((...args) => evidence.add('printed', method, args)),
  )
  const warned = (warning: Error) => evidence.add('printed', 'a warning', warning)
  process.on('warning', warned)
  onTestFinished(() => {
    process.off('warning', warned)
    for (const spy of spies) spy.mockRestore()
  })
  return evidence
}

/** Parts of a secret in every form in which it may be disclosed, because it may be truncated. */
function needlesOf(secret: string | Uint8Array): string[] {
  const bytes = Buffer.from(secret)
  const text = bytes.toString('latin1')
  const forms = [text, bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
  // A byte takes several characters in these, so that the parts are cut before they are encoded.
  const escaped = partsOf(text).flatMap((part) => [
    encodeURIComponent(part),
    JSON.stringify(part).slice(1, -1),
    [...Buffer.from(part, 'latin1')].join(','),
  ])
  return [...forms.flatMap(partsOf), ...escaped].map(withoutWhitespace)
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

/** Everything that a program could print of a value, also of its causes and of what it does not list. */
const WHOLE = { depth: null, showHidden: true, maxArrayLength: null, maxStringLength: null, getters: true }

/** A value as a logger would print it. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value instanceof Uint8Array) return [Buffer.from(value).toString('latin1')]
  return [String(value), inspect(value, WHOLE), jsonOf(value)]
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? `${member}` : member)) ?? ''
  } catch {
    // It is circular, and was inspected.
    return ''
  }
}
