import { compareUtf8 } from '../../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { OrderedList } from '../../../../src/storage/ordered-list.ts'
import {
  decodeDocument,
  type KeyedDocument,
  keyOf,
  type StoredDocument,
  StoredDocuments,
} from './stored-documents.ts'

export interface CatalogEntry extends StoredDocument {
  readonly collection: Collection
  readonly key: string
}

/** The documents of a collection at some moment, in key order. */
export interface CollectionSnapshot {
  readonly collection: Collection
  /** Bytes as a checkpoint stores them, unless the document was changed since. */
  readonly documents: Iterable<Buffer | KeyedDocument>
}

interface CatalogCollection {
  readonly stored: StoredDocuments
  /** Replacements of stored documents. Undefined: deleted. */
  readonly changed: Map<string, StoredDocument | undefined>
  /** Keys of changed documents. */
  readonly keys: OrderedList<string>
}

/** The documents of all collections: those of the checkpoint, and those changed since. */
export class DirectoryCatalog {
  readonly #collections = new Map<Collection, CatalogCollection>()

  get(collection: Collection, key: string): Document | undefined {
    const document = this.#find(collection, key)
    return document === undefined ? undefined : copyOut(collection, key, document)
  }

  versionOf(collection: Collection, key: string): number | null {
    return this.#find(collection, key)?.version ?? null
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const documents = this.#collections.get(collection)
    if (documents === undefined || limit <= 0) return found
    const first = compareUtf8(prefix, after) > 0 ? prefix : after
    const reached = (key: string) => compareUtf8(key, first) >= 0
    for (const entry of merged(documents.stored.items(first), changedFrom(documents, reached))) {
      const { key, document } = Buffer.isBuffer(entry) ? decodeDocument(entry) : entry
      if (!key.startsWith(prefix)) break
      if (document === undefined || key === after) continue
      found.push(copyOut(collection, key, document))
      if (found.length >= limit) break
    }
    return found
  }

  /** Adds documents of a checkpoint, whose bytes are kept. Throws `RangeError` if they are malformed. */
  addStored(collection: Collection, bytes: Buffer): void {
    this.#collection(collection).stored.add(bytes)
  }

  /** The number of documents that {@link addStored} added. */
  get storedSize(): number {
    let size = 0
    for (const { stored } of this.#collections.values()) size += stored.size
    return size
  }

  set(collection: Collection, key: string, document: StoredDocument): void {
    this.#change(collection, key, document)
  }

  delete(collection: Collection, key: string): void {
    const documents = this.#collections.get(collection)
    if (documents?.stored.get(key) !== undefined) this.#change(collection, key, undefined)
    else if (documents?.changed.delete(key)) documents.keys.delete(key)
  }

  /** Captures the documents as they are now. */
  snapshot(): CollectionSnapshot[] {
    return [...this.#collections].map(([collection, documents]) => {
      const changed = [...changedFrom(documents, () => true)]
      return { collection, documents: present(merged(documents.stored.items(), changed)) }
    })
  }

  /** Iterates over all documents in key order. */
  *entries(): Generator<CatalogEntry, void, undefined> {
    for (const { collection, documents } of this.snapshot()) {
      for (const entry of documents) {
        const { key, document } = Buffer.isBuffer(entry) ? decodeDocument(entry) : entry
        yield { collection, key, ...document! }
      }
    }
  }

  #find(collection: Collection, key: string): StoredDocument | undefined {
    const documents = this.#collections.get(collection)
    if (documents === undefined) return undefined
    const { stored, changed } = documents
    return changed.get(key) ?? (changed.has(key) ? undefined : stored.get(key))
  }

  #change(collection: Collection, key: string, document: StoredDocument | undefined): void {
    const { changed, keys } = this.#collection(collection)
    if (!changed.has(key)) keys.add(key)
    changed.set(key, document)
  }

  #collection(collection: Collection): CatalogCollection {
    let documents = this.#collections.get(collection)
    if (documents === undefined) {
      documents = { stored: new StoredDocuments(), changed: new Map(), keys: new OrderedList(compareUtf8) }
      this.#collections.set(collection, documents)
    }
    return documents
  }
}

function* changedFrom(
  { changed, keys }: CatalogCollection,
  reached: (key: string) => boolean,
): Generator<KeyedDocument, void, undefined> {
  for (const key of keys.from(reached)) yield { key, document: changed.get(key) }
}

/** Merges both in key order. A changed document replaces the stored one. */
function* merged(
  stored: Iterable<Buffer>,
  changed: Iterable<KeyedDocument>,
): Generator<Buffer | KeyedDocument, void, undefined> {
  const others = changed[Symbol.iterator]()
  let other = others.next()
  for (const item of stored) {
    let isReplaced = false
    while (other.done !== true) {
      const order = compareUtf8(other.value.key, keyOf(item))
      if (order > 0) break
      isReplaced ||= order === 0
      yield other.value
      other = others.next()
    }
    if (!isReplaced) yield item
  }
  for (; other.done !== true; other = others.next()) yield other.value
}

function* present(
  entries: Iterable<Buffer | KeyedDocument>,
): Generator<Buffer | KeyedDocument, void, undefined> {
  for (const entry of entries) if (Buffer.isBuffer(entry) || entry.document !== undefined) yield entry
}

function copyOut(collection: Collection, key: string, { text, version }: StoredDocument): Document {
  try {
    return { key, value: JSON.parse(text), version }
  } catch {
    // The parser's message quotes the text, which may be secret.
    throw new StorageFailure('corrupt', `a document of ${collection} is not valid JSON`, {
      nothingWritten: true,
    })
  }
}
