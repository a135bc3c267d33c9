import { compareUtf8 } from '../../../src/model/compare-utf8.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** A document with its value as JSON text: parsing it anew for each reader is the copy that the contract asks for. Never changed. */
export interface StoredDocument {
  readonly text: string
  readonly version: number
}

export interface CatalogEntry extends StoredDocument {
  readonly collection: Collection
  readonly key: string
}

interface StoredCollection {
  readonly documents: Map<string, StoredDocument>
  readonly keys: OrderedList<string>
}

/** The documents of all collections. */
export class Catalog {
  readonly #collections = new Map<Collection, StoredCollection>()

  get(collection: Collection, key: string): Document | undefined {
    const document = this.#collections.get(collection)?.documents.get(key)
    return document === undefined ? undefined : copyOut(collection, key, document)
  }

  versionOf(collection: Collection, key: string): number | null {
    return this.#collections.get(collection)?.documents.get(key)?.version ?? null
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const stored = this.#collections.get(collection)
    if (stored === undefined || limit <= 0) return found
    const reached = (key: string) => compareUtf8(key, after) > 0 && compareUtf8(key, prefix) >= 0
    for (const key of stored.keys.from(reached)) {
      if (!key.startsWith(prefix)) break
      found.push(copyOut(collection, key, stored.documents.get(key)!))
      if (found.length >= limit) break
    }
    return found
  }

  set(collection: Collection, key: string, document: StoredDocument): void {
    let stored = this.#collections.get(collection)
    if (stored === undefined) {
      stored = { documents: new Map(), keys: new OrderedList(compareUtf8) }
      this.#collections.set(collection, stored)
    }
    if (!stored.documents.has(key)) stored.keys.add(key)
    stored.documents.set(key, document)
  }

  delete(collection: Collection, key: string): void {
    const stored = this.#collections.get(collection)
    if (stored?.documents.delete(key)) stored.keys.delete(key)
  }

  /** How many documents there are. */
  get size(): number {
    let size = 0
    for (const { documents } of this.#collections.values()) size += documents.size
    return size
  }

  /** Everything, in the order of the keys: a checkpoint in this order is read back without sorting. */
  entries(): CatalogEntry[] {
    const entries: CatalogEntry[] = []
    for (const [collection, { documents, keys }] of this.#collections) {
      for (const key of keys.from(() => true)) entries.push({ collection, key, ...documents.get(key)! })
    }
    return entries
  }
}

function copyOut(collection: Collection, key: string, { text, version }: StoredDocument): Document {
  try {
    return { key, value: JSON.parse(text), version }
  } catch {
    // What the parser says repeats a part of the text, which may be secret.
    throw new StorageFailure('corrupt', `a document of ${collection} is no JSON`, { nothingWritten: true })
  }
}
