/** The most beginnings of append ids that are shared: each engine has its own. */
const PREFIXES_MAX = 256

/** Keeps counts exact. */
const DIGITS_MAX = 15

const ZERO = 0x30

/** Append ids as two numbers: that of a beginning, which many share, and a count after it. */
export class AppendIds {
  /** The first one is that of the id of no append. */
  readonly #prefixes = ['']
  /** The numbers of the id that was parsed last. The count is 0 if the id has none. */
  prefix = 0
  count = 0

  /** Sets the numbers of an id. Returns whether it has any. */
  parse(id: string): boolean {
    const { length } = id
    let start = length
    let count = 0
    const end = Math.max(length - DIGITS_MAX, 0)
    for (let at = length - 1, unit = 1; at >= end; at--, unit *= 10) {
      const digit = id.charCodeAt(at) - ZERO
      if (digit < 0 || digit > 9) break
      if (digit === 0) continue
      // A count does not begin with 0.
      start = at
      count += digit * unit
    }
    this.count = count
    const recent = this.#prefixes[this.prefix]!
    if (start === recent.length && id.startsWith(recent)) return true
    const prefix = id.slice(0, start)
    const known = this.#prefixes.indexOf(prefix)
    if (known < 0 && (count === 0 || this.#prefixes.length >= PREFIXES_MAX)) return false
    this.prefix = known < 0 ? this.#prefixes.push(prefix) - 1 : known
    return true
  }

  /** Returns the id with these numbers. */
  idOf(prefix: number, count: number): string {
    return this.#prefixes[prefix]! + (count === 0 ? '' : count)
  }

  /** Returns whether an id has these numbers, without making a text of them. */
  isSame(id: string, prefix: number, count: number): boolean {
    const beginning = this.#prefixes[prefix]!
    if (count === 0) return id === beginning
    if (!id.startsWith(beginning)) return false
    const { length } = id
    const start = beginning.length
    if (length === start || length > start + DIGITS_MAX || id.charCodeAt(start) === ZERO) return false
    let value = 0
    for (let at = start; at < length; at++) {
      const digit = id.charCodeAt(at) - ZERO
      if (digit < 0 || digit > 9) return false
      value = 10 * value + digit
    }
    return value === count
  }
}
