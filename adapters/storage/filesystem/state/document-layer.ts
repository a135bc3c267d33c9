import { compareUtf8 } from '../../../../src/model/bytes.ts'
import { OrderedList } from '../../../../src/storage/ordered-list.ts'
import { type KeyedDocument, keyOf, type StoredDocument } from './stored-documents.ts'

/** Changed documents in memory. Undefined: deleted. */
export class DocumentLayer {
  readonly #documents = new Map<string, StoredDocument | undefined>()
  readonly #keys = new OrderedList<string>(compareUtf8)

  get size(): number {
    return this.#documents.size
  }

  has(key: string): boolean {
    return this.#documents.has(key)
  }

  get(key: string): StoredDocument | undefined {
    return this.#documents.get(key)
  }

  set(key: string, document: StoredDocument | undefined): void {
    if (!this.#documents.has(key)) this.#keys.add(key)
    this.#documents.set(key, document)
  }

  delete(key: string): void {
    if (this.#documents.delete(key)) this.#keys.delete(key)
  }

  /** Iterates in the order of UTF-8 from the first key that is not before `first`. */
  *from(first: string): Generator<KeyedDocument, void, undefined> {
    for (const key of this.#keys.from((other) => compareUtf8(other, first) >= 0)) {
      yield { key, document: this.#documents.get(key) }
    }
  }
}

/** Merges both in key order. A document of `above` replaces one of `below`. */
export function* overlaid<Entry extends Buffer | KeyedDocument>(
  below: Iterable<Entry>,
  above: Iterable<KeyedDocument>,
): Generator<Entry | KeyedDocument, void, undefined> {
  const others = above[Symbol.iterator]()
  let other = others.next()
  for (const entry of below) {
    let isReplaced = false
    while (other.done !== true) {
      const order = compareUtf8(other.value.key, Buffer.isBuffer(entry) ? keyOf(entry) : entry.key)
      if (order > 0) break
      isReplaced ||= order === 0
      yield other.value
      other = others.next()
    }
    if (!isReplaced) yield entry
  }
  for (; other.done !== true; other = others.next()) yield other.value
}
