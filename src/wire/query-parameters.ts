import { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * The parameters of a query, form-urlencoded (wire-behaviour.md 1.7). Unknown ones are ignored. Bytes that are no UTF-8 decode to
 * U+FFFD: form decoding is lossy by definition, and no parameter can mean something by it.
 */
export class QueryParameters {
  readonly #parameters: URLSearchParams

  /** `search` with or without its question mark. */
  constructor(search: string) {
    this.#parameters = new URLSearchParams(search)
  }

  /** The value, or undefined when it is not given. Throws 400 `bad_query` when it is given twice. */
  text(name: string): string | undefined {
    const values = this.#parameters.getAll(name)
    if (values.length > 1) throw badQuery(`parameter \`${name}\` is given more than once`, name)
    return values[0]
  }

  boolean(name: string): boolean | undefined {
    switch (this.text(name)) {
      case undefined:
        return undefined
      case 'true':
        return true
      case 'false':
        return false
      default:
        throw badQuery(`parameter \`${name}\` must be true or false`, name)
    }
  }

  /**
   * A plain unsigned decimal of at most `max`. Throws 400 `bad_query` for anything else. Without `max`, up to 2^64 - 1, and what lies
   * beyond 2^53 - 1 is `Infinity`: the caller saturates or refuses it.
   */
  integer(name: string, max?: number): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const digits = /^0*([0-9]{1,20})$/.exec(text)?.[1]
    if (digits === undefined || BigInt(digits) > BigInt(max ?? UINT64_MAX)) {
      throw badQuery(`parameter \`${name}\` must be an integer from 0 to ${max ?? UINT64_MAX}`, name)
    }
    const value = Number(digits)
    return value <= INTEGER_MAX ? value : Number.POSITIVE_INFINITY
  }
}

const UINT64_MAX = 0xffff_ffff_ffff_ffffn

export function badQuery(message: string, field: string): HeadwaterError {
  return new HeadwaterError('bad_query', message, { field })
}
