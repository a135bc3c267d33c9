/** Each engine has a prefix, and the search for one compares them all. */
const PREFIXES_MAX = 256

/** Larger counts would not be exact. */
const DIGITS_MAX = 15

const ZERO = 0x30

/**
 * Append ids as two numbers: that of a prefix, and a count after it. An engine draws one prefix, so many
 * streams share it.
 */
export class AppendIds {
  /** The first one is that of `''`, the id before the first append. */
  readonly #prefixes = ['']
  /** The numbers of the id that was parsed last. The count is 0 if the id ends with none. */
  prefix = 0
  count = 0

  /** Sets the numbers to those of an id. Returns false if its prefix has no number, and gets none. */
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

  /** Returns whether an id has these numbers, without making a string of them. */
  isSame(id: string, prefix: number, count: number): boolean {
    const text = this.#prefixes[prefix]!
    if (count === 0) return id === text
    if (!id.startsWith(text)) return false
    const { length } = id
    const start = text.length
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
