/** A condition on records. */
export type Query =
  | { readonly kind: 'all' | 'any'; readonly of: readonly Query[] }
  | { readonly kind: 'not'; readonly of: Query }
  /** The body, a header, or a header as `name=value` contains the text, in any case. */
  | { readonly kind: 'text'; readonly text: string }
  /** A header, a value within a JSON body, or a fact about the record exists, or compares as stated. */
  | {
      readonly kind: 'value'
      readonly of: 'header' | 'json' | 'fact'
      readonly path: readonly (string | number)[]
      readonly operator: Operator | undefined
      readonly value: string
    }

/** Facts about records: `@seq>=100`. */
const FACTS = ['seq', 'time', 'size', 'command'] as const

/** Every record. */
const EVERYTHING: Query = { kind: 'all', of: [] }

/**
 * Parses a query: terms that all must hold. `OR` separates alternatives, `-` negates a term, and parentheses
 * group. A term is
 *
 * - a text, `"in quotes"` if it has spaces or operators,
 * - `name=value`, a header; also `!=`, `<`, `<=`, `>`, `>=`, and `~` for "contains",
 * - `.path.to[0]>5`, a value within a JSON body; without an operator, that it exists,
 * - `@seq`, `@time`, `@size` (of the body, in bytes) or `@command`.
 *
 * Throws an error with a message for people.
 */
export function parseQuery(text: string): Query {
  return new Parser(text).query()
}

const QUOTED = /"((?:[^"\\]|\\.)*)"/y
const PLAIN = /[^\s()"=!<>~]+/y
const OPERATOR = /!=|<=|>=|[=<>~]/y
const SPACE = /\s*/y
const VALUE = /[^\s()"]+/y
/** A part of a path: `.name`, `."any name"` or `[0]`. */
const STEP = /\.([^\s()"=!<>~.[\]]+)|\."((?:[^"\\]|\\.)*)"|\.?\[(\d+)\]/y

class Parser {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  query(): Query {
    const query = this.#alternatives()
    if (this.#at < this.#text.length) throw new Error('“)” without “(”')
    return query
  }

  #alternatives(): Query {
    const all = [this.#terms()]
    while (this.#takeOr()) all.push(this.#terms())
    if (all.length === 1) return all[0]!
    if (all.some((one) => one === EVERYTHING)) throw new Error('OR needs a term on both sides')
    return { kind: 'any', of: all }
  }

  #terms(): Query {
    const terms: Query[] = []
    while (this.#hasTerm()) terms.push(this.#term())
    if (terms.length === 0) return EVERYTHING
    return terms.length === 1 ? terms[0]! : { kind: 'all', of: terms }
  }

  #hasTerm(): boolean {
    this.#take(SPACE)
    return this.#at < this.#text.length && this.#text[this.#at] !== ')' && !this.#isOr()
  }

  #isOr(): boolean {
    return /^OR(?=[\s()]|$)/.test(this.#text.slice(this.#at, this.#at + 3))
  }

  #takeOr(): boolean {
    this.#take(SPACE)
    const isOr = this.#isOr()
    if (isOr) this.#at += 2
    return isOr
  }

  #term(): Query {
    // A query is recursive, and so is what evaluates it.
    if (++this.#depth > 100) throw new Error('the query is nested too deeply')
    const query = this.#operand()
    this.#depth--
    return query
  }

  #operand(): Query {
    const next = this.#text[this.#at]
    if (next === '-' && /[^\s)]/.test(this.#text[this.#at + 1] ?? '')) {
      this.#at++
      return { kind: 'not', of: this.#term() }
    }
    if (next === '(') {
      this.#at++
      const query = this.#alternatives()
      if (this.#text[this.#at] !== ')') throw new Error('“(” without “)”')
      this.#at++
      return query
    }
    if (next === '.' && /[^\s().]/.test(this.#text[this.#at + 1] ?? '')) {
      return this.#comparison('json', this.#path(), true)
    }
    if (next === '@') return this.#fact()
    const quoted = this.#quoted()
    const name = quoted ?? this.#take(PLAIN)?.[0]
    // What begins with an operator is a text.
    if (name === undefined) return { kind: 'text', text: this.#take(VALUE)![0] }
    return this.#comparison('header', [name], false) ?? { kind: 'text', text: name }
  }

  #fact(): Query {
    const [name] = this.#take(PLAIN)!
    const fact = FACTS.find((one) => `@${one}` === name)
    if (fact !== undefined) return this.#comparison('fact', [fact], true)
    if (name === '@') return { kind: 'text', text: name }
    throw new Error(`unknown ${name}: there are ${FACTS.map((one) => `@${one}`).join(', ')}`)
  }

  #path(): (string | number)[] {
    const path: (string | number)[] = []
    // A path of no steps is the whole body, as in `.=5`.
    const isBody = /^\.[=!<>~]/.test(this.#text.slice(this.#at, this.#at + 2))
    if (isBody) this.#at++
    for (let step = this.#take(STEP); step !== undefined; step = this.#take(STEP)) {
      const [, plain, quoted, index] = step
      path.push(index === undefined ? (plain ?? unescaped(quoted!)) : Number(index))
    }
    if (path.length === 0 && !isBody) throw new Error('a path is written like .items[0].id')
    return path
  }

  #comparison(of: 'json' | 'fact', path: readonly (string | number)[], isAlone: true): Query
  #comparison(of: 'header', path: readonly string[], isAlone: false): Query | undefined
  #comparison(
    of: 'header' | 'json' | 'fact',
    path: readonly (string | number)[],
    isAlone: boolean,
  ): Query | undefined {
    const written = this.#take(OPERATOR)?.[0]
    if (written === undefined && !isAlone) return undefined
    const operator = (written === '!=' ? '=' : written) as Operator | undefined
    const text = (operator && (this.#quoted() ?? this.#take(VALUE)?.[0])) ?? ''
    const value = of === 'fact' && path[0] === 'time' ? millisecondsOf(text) : text
    const query: Query = { kind: 'value', of, path, operator, value }
    return written === '!=' ? { kind: 'not', of: query } : query
  }

  #quoted(): string | undefined {
    if (this.#text[this.#at] !== '"') return undefined
    const quoted = this.#take(QUOTED)
    if (quoted === undefined) throw new Error('a quotation mark is missing')
    return unescaped(quoted[1]!)
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match === null) return undefined
    this.#at = pattern.lastIndex
    return match
  }
}

/** A text as the value of a term: in quotation marks if it needs them. */
export function quotedTerm(text: string): string {
  return /^[^\s()"]+$/.test(text) ? text : quoted(text)
}

export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** A time as milliseconds: a date of the local time zone unless it names another, or milliseconds. */
function millisecondsOf(text: string): string {
  const ms = /^\d*$/.test(text) ? text : String(Date.parse(text))
  if (ms === 'NaN') throw new Error(`@time: “${text}” is not a time, such as 2026-01-31T12:00`)
  return ms
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}

/** The relation of a value of a record to that of a query; `~` is "contains, in any case". */
type Operator = '=' | '<' | '<=' | '>' | '>=' | '~'

const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i
const INTEGER = /^-?\d+$/
/** Numbers with more digits are not exact in JavaScript. */
const EXACT_DIGITS = 15

/** Compares as numbers if both are, however many digits integers have, else as text by code units. */
export function compares(value: string, operator: Operator, other: string): boolean {
  if (operator === '~') return value.toLowerCase().includes(other.toLowerCase())
  const [a, b] = comparable(value, other)
  if (operator === '=') return a === b
  return operator[0] === '<'
    ? a < b || (operator === '<=' && a === b)
    : a > b || (operator === '>=' && a === b)
}

function comparable(a: string, b: string): readonly [string | number | bigint, string | number | bigint] {
  if (!NUMBER.test(a) || !NUMBER.test(b)) return [a, b]
  const isLong = a.length > EXACT_DIGITS || b.length > EXACT_DIGITS
  if (isLong && INTEGER.test(a) && INTEGER.test(b)) return [BigInt(a), BigInt(b)]
  return [Number(a), Number(b)]
}
