import { compareUtf8 } from '../../../src/model/bytes.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/**
 * A document with its value as JSON text. Each reader parses it, which is the copy that the contract
 * requires.
 */
export interface DocumentText {
  readonly text: string
  readonly version: number
}

/** The documents of a collection. */
export interface DocumentStore {
  readonly size: number
  get(key: string): DocumentText | undefined
  versionOf(key: string): number | undefined
  set(key: string, document: DocumentText): void
  delete(key: string): void
  /** Iterates from the first key that is not before `first`, in the order of UTF-8. */
  from(first: string): Iterable<readonly [key: string, document: DocumentText]>
}

/** A few documents, each with objects of its own. */
export class DocumentMap implements DocumentStore {
  readonly #documents = new Map<string, DocumentText>()
  readonly #keys = new OrderedList<string>(compareUtf8)

  get size(): number {
    return this.#documents.size
  }

  get(key: string): DocumentText | undefined {
    return this.#documents.get(key)
  }

  versionOf(key: string): number | undefined {
    return this.#documents.get(key)?.version
  }

  set(key: string, { text, version }: DocumentText): void {
    if (!this.#documents.has(key)) this.#keys.add(key)
    this.#documents.set(key, { text: joined(text), version })
  }

  delete(key: string): void {
    if (this.#documents.delete(key)) this.#keys.delete(key)
  }

  *from(first: string): Generator<[string, DocumentText], void, undefined> {
    for (const key of this.#keys.from((key) => compareUtf8(key, first) >= 0)) {
      yield [key, this.#documents.get(key)!]
    }
  }
}

/** The text as one string: engines build it as a tree of many small ones, which takes twice the memory. */
function joined(text: string): string {
  // Looking for a character joins the parts in place. Optimized code looks only if the result is used.
  if (text.includes('\0')) throw new RangeError('JSON contains U+0000')
  return text
}
