import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { DocumentUpdate, DocumentVersions } from '../../../src/storage/commit-plan.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { DocumentMap, type DocumentStore } from './document-store.ts'

/** The documents of all collections. */
export class MemoryCatalog implements DocumentVersions {
  readonly #unpackedMax: number
  readonly #collections = new Map<Collection, DocumentStore>()
  /** The collections with many documents that are not packed. */
  readonly #large = new Set<Collection>()
  #version = 0

  /** @param unpackedMax How many documents of a collection may have objects before they are packed. */
  constructor(unpackedMax: number) {
    this.#unpackedMax = unpackedMax
  }

  /** Whether a collection should be packed. */
  get isLarge(): boolean {
    return this.#large.size > 0
  }

  /** Packs the large collections. */
  pack(newStore: () => DocumentStore): void {
    for (const collection of this.#large) {
      const packed = newStore()
      for (const [key, document] of this.#collections.get(collection)!.from('')) packed.set(key, document)
      this.#collections.set(collection, packed)
    }
    this.#large.clear()
  }

  get(collection: Collection, key: string): Document | undefined {
    const document = this.#collections.get(collection)?.get(key)
    return document && { key, value: JSON.parse(document.text), version: document.version }
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const stored = this.#collections.get(collection)
    if (stored === undefined || limit <= 0) return found
    for (const [key, document] of stored.from(compareUtf8(after, prefix) > 0 ? after : prefix)) {
      if (key === after) continue
      if (!key.startsWith(prefix)) break
      found.push({ key, value: JSON.parse(document.text), version: document.version })
      if (found.length >= limit) break
    }
    return found
  }

  /** A single counter for all documents: a version is never reused, even after a deletion. */
  nextVersion(): number {
    return ++this.#version
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.#collections.get(collection)?.versionOf(key)
  }

  apply({ collection, key, content }: DocumentUpdate): void {
    const stored = this.#collection(collection)
    if (content === undefined) stored.delete(key)
    else stored.set(key, content)
    if (stored instanceof DocumentMap && stored.size > this.#unpackedMax) this.#large.add(collection)
  }

  #collection(collection: Collection): DocumentStore {
    let stored = this.#collections.get(collection)
    if (stored === undefined) {
      stored = new DocumentMap()
      this.#collections.set(collection, stored)
    }
    return stored
  }
}
