import { isWellFormed, textOf } from '../model/bytes.ts'
import type { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { badJson, JsonNumber, JsonObject, type ParsedJson } from './json-values.ts'

/** As deep as arrays and objects may nest. */
export const JSON_DEPTH_MAX = 128

/**
 * Reads a JSON document (RFC 8259) from UTF-8. Throws 400 `bad_json` for ill-formed UTF-8, a byte order mark, any departure from the
 * grammar, an escaped lone surrogate, nesting beyond {@link JSON_DEPTH_MAX} and trailing bytes. Takes time and memory linear in
 * the length of the document, which the caller bounds. Strings may be slices that keep the document's text alive.
 */
export function readJson(bytes: Uint8Array): ParsedJson {
  const text = textOf(bytes)
  if (text === undefined) throw badJson('invalid JSON: not UTF-8')
  return readJsonText(text)
}

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
  /** Elements of the arrays and objects that are still open; taken off when one closes, as an array of the exact length. */
  readonly #open: ParsedJson[] = []
  // The first backslash and the first control character at or after the last string that began, so that a document is searched for
  // each once, not once a string.
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
    while (end !== -1 && isEscaped(text, start, end)) end = text.indexOf('"', end + 1)
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
    // Unescaped text comes from UTF-8 and is well-formed; only \u can bring in half a pair.
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

  /** Skips white space and returns the code unit behind it, or END. */
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

/** Whether an odd number of backslashes stands before the quote. Runs of different quotes do not overlap: linear in all. */
function isEscaped(text: string, start: number, quote: number): boolean {
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
