import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { Collection, Document, JsonValue, ListRange } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/**
 * A document with its value as JSON text. Each reader parses it, which is the copy that the contract
 * requires.
 */
interface StoredDocument {
  readonly text: string
  readonly version: number
}

interface StoredCollection {
  readonly documents: Map<string, StoredDocument>
  readonly keys: OrderedList<string>
}

/** The documents of all collections. Each change returns a function that undoes it. */
export class Catalog {
  readonly #collections = new Map<Collection, StoredCollection>()
  /** A single counter for all documents: a version is never reused, even after a deletion. */
  #version = 0

  get(collection: Collection, key: string): Document | undefined {
    const document = this.#collections.get(collection)?.documents.get(key)
    return document === undefined ? undefined : copyOut(key, document)
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const stored = this.#collections.get(collection)
    if (stored === undefined || limit <= 0) return found
    const reached = (key: string) => compareUtf8(key, after) > 0 && compareUtf8(key, prefix) >= 0
    for (const key of stored.keys.from(reached)) {
      if (!key.startsWith(prefix)) break
      found.push(copyOut(key, stored.documents.get(key)!))
      if (found.length >= limit) break
    }
    return found
  }

  put(collection: Collection, key: string, value: JsonValue, expect: number | null | undefined): () => void {
    const before = this.check(collection, key, expect)
    this.#set(collection, key, { text: joined(JSON.stringify(value)), version: ++this.#version })
    return () => this.#set(collection, key, before)
  }

  delete(collection: Collection, key: string, expect: number | undefined): () => void {
    const before = this.check(collection, key, expect)
    this.#set(collection, key, undefined)
    return () => this.#set(collection, key, before)
  }

  /** Returns the document. Throws `StorageConflict` if it does not have the expected version. */
  check(collection: Collection, key: string, expect: number | null | undefined): StoredDocument | undefined {
    const document = this.#collections.get(collection)?.documents.get(key)
    if (expect !== undefined && (document?.version ?? null) !== expect) {
      throw new StorageConflict(
        `document ${JSON.stringify(key)} in ${collection} does not have the expected version`,
      )
    }
    return document
  }

  #set(collection: Collection, key: string, document: StoredDocument | undefined): void {
    const { documents, keys } = this.#collection(collection)
    if (document === undefined) {
      if (documents.delete(key)) keys.delete(key)
      return
    }
    if (!documents.has(key)) keys.add(key)
    documents.set(key, document)
  }

  #collection(collection: Collection): StoredCollection {
    let stored = this.#collections.get(collection)
    if (stored === undefined) {
      stored = { documents: new Map(), keys: new OrderedList(compareUtf8) }
      this.#collections.set(collection, stored)
    }
    return stored
  }
}

/** The text as one string: engines build it as a tree of many small ones, which takes twice the memory. */
function joined(text: string): string {
  // Looking for a character joins the parts in place. Optimized code looks only if the result is used.
  if (text.includes('\0')) throw new RangeError('JSON contains U+0000')
  return text
}

function copyOut(key: string, { text, version }: StoredDocument): Document {
  return { key, value: JSON.parse(text), version }
}
