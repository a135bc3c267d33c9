import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { DocumentUpdate, DocumentVersions } from '../../../src/storage/commit-plan.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { DocumentMap, type DocumentStore } from './document-store.ts'

/** The documents of all collections. */
export class MemoryCatalog implements DocumentVersions {
  /** Replaced, with all stores, by the code that packs documents. */
  newStore: () => DocumentStore = () => new DocumentMap()
  readonly stores = new Map<Collection, DocumentStore>()
  #version = 0

  get(collection: Collection, key: string): Document | undefined {
    const document = this.stores.get(collection)?.get(key)
    return document && { key, value: JSON.parse(document.text), version: document.version }
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const store = this.stores.get(collection)
    if (store === undefined || limit <= 0) return found
    for (const key of store.keysFrom(compareUtf8(after, prefix) > 0 ? after : prefix)) {
      if (key === after) continue
      if (!key.startsWith(prefix)) break
      found.push(this.get(collection, key)!)
      if (found.length >= limit) break
    }
    return found
  }

  /** A single counter for all documents: a version is never reused, even after a deletion. */
  nextVersion(): number {
    return ++this.#version
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.stores.get(collection)?.get(key)?.version
  }

  apply({ collection, key, content }: DocumentUpdate): void {
    const store = this.stores.get(collection) ?? this.newStore()
    this.stores.set(collection, store)
    if (content === undefined) store.delete(key)
    else store.set(key, content)
  }
}
