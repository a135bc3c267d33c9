import { compareUtf8 } from '../../../src/model/compare-utf8.ts'
import type { Collection, Document, JsonValue, ListRange } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** A document with its value as JSON text: parsing it anew for each reader is the copy that the contract asks for. */
interface StoredDocument {
  readonly text: string
  readonly version: number
}

interface StoredCollection {
  readonly documents: Map<string, StoredDocument>
  readonly keys: OrderedList<string>
}

/** The documents of all collections. Changes return how to take them back. */
export class Catalog {
  readonly #collections = new Map<Collection, StoredCollection>()
  /** One counter for everything: a version cannot return, whatever is deleted. */
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
    this.#set(collection, key, { text: JSON.stringify(value), version: ++this.#version })
    return () => this.#set(collection, key, before)
  }

  delete(collection: Collection, key: string, expect: number | undefined): () => void {
    const before = this.check(collection, key, expect)
    this.#set(collection, key, undefined)
    return () => this.#set(collection, key, before)
  }

  /** Returns what is there, or throws `StorageConflict` when it is not what is expected. */
  check(collection: Collection, key: string, expect: number | null | undefined): StoredDocument | undefined {
    const document = this.#collections.get(collection)?.documents.get(key)
    if (expect !== undefined && (document?.version ?? null) !== expect) {
      throw new StorageConflict(
        `the document ${JSON.stringify(key)} of ${collection} is not at the expected version`,
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

function copyOut(key: string, { text, version }: StoredDocument): Document {
  return { key, value: JSON.parse(text), version }
}
