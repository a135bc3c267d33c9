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
  get(key: string): DocumentText | undefined
  set(key: string, document: DocumentText): void
  delete(key: string): void
  /** Iterates over the keys from the first one that is not before `first`, in the order of UTF-8. */
  keysFrom(first: string): Iterable<string>
}

/** A few documents, each with objects of its own. */
export class DocumentMap extends Map<string, DocumentText> implements DocumentStore {
  readonly #keys = new OrderedList<string>(compareUtf8)

  override set(key: string, document: DocumentText): this {
    join(document.text)
    if (!this.has(key)) this.#keys.add(key)
    return super.set(key, document)
  }

  override delete(key: string): boolean {
    return super.delete(key) && this.#keys.delete(key)
  }

  keysFrom(first: string): Iterable<string> {
    return this.#keys.from((key) => compareUtf8(key, first) >= 0)
  }
}

/** Makes the text one string: engines build it as a tree of many small ones, which takes twice the memory. */
function join(text: string): void {
  // Looking for a character joins the parts in place. Optimized code looks only if the result is used.
  if (text.includes('\0')) throw new RangeError('U+0000')
}
