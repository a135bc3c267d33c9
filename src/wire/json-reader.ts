import { isWellFormed, textOf } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * A JSON document. Unlike the result of `JSON.parse`, it never rounds integers and reveals duplicate members.
 */
export type ParsedJson = null | boolean | number | string | JsonNumber | JsonObject | readonly ParsedJson[]

/** A number other than an integer from 0 to 2^53 - 1. */
export class JsonNumber {
  /** The literal in the document. */
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** Whether this is an integer from 2^53 to 2^64 - 1. */
  get isUint64(): boolean {
    return /^[0-9]{16,20}$/.test(this.source) && BigInt(this.source) <= 0xffff_ffff_ffff_ffffn
  }
}

/**
 * An object whose members are stored in a flat array, because a document may contain a million tiny objects.
 */
export class JsonObject {
  /** Names at even indexes, each followed by its value. */
  readonly #entries: readonly ParsedJson[]

  constructor(entries: readonly ParsedJson[]) {
    this.#entries = entries
  }

  /** The number of members, including duplicates. */
  get size(): number {
    return this.#entries.length / 2
  }

  /** The value of a member, or undefined. Throws 400 `bad_json` if the member occurs twice. */
  get(name: string): ParsedJson | undefined {
    const entries = this.#entries
    let found: ParsedJson | undefined
    for (let i = 0; i < entries.length; i += 2) {
      if (entries[i] !== name) continue
      if (found !== undefined) throw badJson(`duplicate member \`${name}\``, name)
      found = entries[i + 1]
    }
    return found
  }

  /** All members, duplicates included. */
  *members(): IterableIterator<[name: string, value: ParsedJson]> {
    for (let i = 0; i < this.#entries.length; i += 2) {
      yield [this.#entries[i] as string, this.#entries[i + 1]!]
    }
  }
}

/** A 400 `bad_json` error (docs/protocol.md "JSON"). */
export function badJson(message: string, field?: string): HeadwaterError {
  return new HeadwaterError('bad_json', message, field === undefined ? {} : { field })
}

/** The deepest nesting of arrays and objects. */
export const JSON_DEPTH_MAX = 128

/**
 * Parses a JSON document (RFC 8259) in UTF-8. Throws 400 `bad_json` for invalid UTF-8, a byte order mark, any
 * deviation from the grammar, an escaped lone surrogate, nesting beyond {@link JSON_DEPTH_MAX} and trailing
 * bytes. Time and memory are linear in the length of the document. Strings may be slices that keep its text
 * in memory.
 */
export function readJson(bytes: Uint8Array): ParsedJson {
  return readJsonText(jsonText(bytes))
}

/** Decodes the UTF-8 of a document. Throws 400 `bad_json`. */
export function jsonText(bytes: Uint8Array): string {
  const text = textOf(bytes)
  if (text === undefined) throw badJson('invalid JSON: not UTF-8')
  return text
}

/** Parses a JSON document, as {@link readJson} does, from text. */
export function readJsonText(text: string): ParsedJson {
  return new JsonParser(text).document()
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const DIGITS = /^[0-9]{1,16}$/
/** Below U+0020. */
const CONTROL = /[^ -\uffff]/g
const EMPTY_OBJECT = new JsonObject([])
const EMPTY_ARRAY: readonly ParsedJson[] = Object.freeze([])

class JsonParser {
  readonly #text: string
  #at = 0
  #depth = 0
  /**
   * Elements of the open arrays and objects. Closing one removes its elements into an array of exact length.
   */
  readonly #open: ParsedJson[] = []
  // The first backslash and the first control character at or after the last string that began, so that a
  // document is searched for each once, not once a string.
  #backslash = -1
  #control = -1

  constructor(text: string) {
    this.#text = text
  }

  document(): ParsedJson {
    const value = this.#value()
    if (this.#next() !== END) throw this.#unexpected()
    return value
  }

  #value(): ParsedJson {
    switch (this.#next()) {
      case QUOTE:
        return this.#string()
      case OPEN_BRACE:
        return this.#object()
      case OPEN_BRACKET:
        return this.#array()
      case LOWER_T:
        return this.#word('true', true)
      case LOWER_F:
        return this.#word('false', false)
      case LOWER_N:
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(): JsonObject {
    const start = this.#enter()
    if (this.#next() === CLOSE_BRACE) {
      this.#leave()
      return EMPTY_OBJECT
    }
    for (;;) {
      if (this.#next() !== QUOTE) throw this.#unexpected()
      this.#open.push(this.#string())
      if (this.#next() !== COLON) throw this.#unexpected()
      this.#at++
      this.#open.push(this.#value())
      const code = this.#next()
      if (code === CLOSE_BRACE) break
      if (code !== COMMA) throw this.#unexpected()
      this.#at++
    }
    this.#leave()
    return new JsonObject(this.#open.splice(start))
  }

  #array(): readonly ParsedJson[] {
    const start = this.#enter()
    if (this.#next() === CLOSE_BRACKET) {
      this.#leave()
      return EMPTY_ARRAY
    }
    for (;;) {
      this.#open.push(this.#value())
      const code = this.#next()
      if (code === CLOSE_BRACKET) break
      if (code !== COMMA) throw this.#unexpected()
      this.#at++
    }
    this.#leave()
    return this.#open.splice(start)
  }

  #enter(): number {
    if (++this.#depth > JSON_DEPTH_MAX) throw badJson(`invalid JSON: nested deeper than ${JSON_DEPTH_MAX}`)
    this.#at++
    return this.#open.length
  }

  #leave(): void {
    this.#depth--
    this.#at++
  }

  #string(): string {
    const text = this.#text
    const start = this.#at + 1
    if (this.#backslash < start) this.#backslash = indexOrEnd(text, text.indexOf('\\', start))
    let end = text.indexOf('"', start)
    if (end < this.#backslash && end !== -1) {
      if (this.#control < start) this.#control = indexOrEnd(text, controlIndex(text, start))
      if (this.#control < end) throw this.#unexpected(this.#control)
      this.#at = end + 1
      return text.slice(start, end)
    }
    while (end !== -1 && isEscaped(text, end, start)) end = text.indexOf('"', end + 1)
    if (end === -1) throw this.#unexpected(text.length)
    this.#at = end + 1
    return this.#unescape(text.slice(start - 1, end + 1), start)
  }

  #unescape(literal: string, start: number): string {
    let value: string
    try {
      value = JSON.parse(literal)
    } catch {
      throw badJson(`invalid JSON: bad escape or control character in the string at character ${start - 1}`)
    }
    // Text from UTF-8 is well-formed; only \u escapes can contain a lone surrogate.
    if (literal.includes('\\u') && !isWellFormed(value)) {
      throw badJson(`invalid JSON: lone surrogate in the string at character ${start - 1}`)
    }
    return value
  }

  #number(): number | JsonNumber {
    NUMBER.lastIndex = this.#at
    if (!NUMBER.test(this.#text)) throw this.#unexpected()
    const source = this.#text.slice(this.#at, NUMBER.lastIndex)
    this.#at = NUMBER.lastIndex
    const value = DIGITS.test(source) ? Number(source) : Number.POSITIVE_INFINITY
    return value <= INTEGER_MAX ? value : new JsonNumber(source)
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected()
    this.#at += word.length
    return value
  }

  /** Skips white space and returns the next code unit, or END. */
  #next(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== SPACE && code !== NEWLINE && code !== RETURN && code !== TAB) {
        return this.#at < this.#text.length ? code : END
      }
      this.#at++
    }
  }

  #unexpected(at = this.#at): HeadwaterError {
    return badJson(
      at < this.#text.length
        ? `invalid JSON: unexpected character at character ${at}`
        : 'invalid JSON: unexpected end of the document',
    )
  }
}

/**
 * Whether a quote follows an odd number of backslashes. Runs before different quotes do not overlap, so the
 * total time is linear.
 */
export function isEscaped(text: string, quote: number, start = 0): boolean {
  let at = quote
  while (at > start && text.charCodeAt(at - 1) === BACKSLASH) at--
  return (quote - at) % 2 === 1
}

function controlIndex(text: string, start: number): number {
  CONTROL.lastIndex = start
  return CONTROL.test(text) ? CONTROL.lastIndex - 1 : -1
}

function indexOrEnd(text: string, index: number): number {
  return index === -1 ? text.length : index
}

const END = -1
const TAB = 0x09
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
