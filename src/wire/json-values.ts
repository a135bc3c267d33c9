import { HeadwaterError } from '../model/errors.ts'

/**
 * A JSON document as decoders need it, which is more than `JSON.parse` tells: integers are never rounded, and a member that is given
 * twice is noticed when it is asked for.
 */
export type ParsedJson = null | boolean | number | string | JsonNumber | JsonObject | readonly ParsedJson[]

/** Any number but an integer from 0 to 2^53 - 1, which is a JavaScript number. */
export class JsonNumber {
  /** The literal as it stands in the document. */
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** Whether this is an integer from 2^53 to 2^64 - 1. */
  get isUint64(): boolean {
    return /^[0-9]{16,20}$/.test(this.source) && BigInt(this.source) <= 0xffff_ffff_ffff_ffffn
  }
}

/** The members in the order of the document, kept flat: a document of a million tiny objects must not cost a million maps. */
export class JsonObject {
  /** Names at even places, their values behind them. */
  readonly #entries: readonly ParsedJson[]

  constructor(entries: readonly ParsedJson[]) {
    this.#entries = entries
  }

  get size(): number {
    return this.#entries.length / 2
  }

  /** The value of a member, undefined when there is none. Throws 400 `bad_json` when the member is given twice. */
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

/** A body that is not the JSON it should be (wire-behaviour.md 1.6). */
export function badJson(message: string, field?: string): HeadwaterError {
  return new HeadwaterError('bad_json', message, field === undefined ? {} : { field })
}
