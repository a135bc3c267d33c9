import { compareUtf8 } from '../../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import {
  DocumentLayer,
  type DocumentPlaces,
  decodeDocument,
  documentAt,
  indexInPage,
  type KeyedDocument,
  overlaid,
  type StoredDocument,
  StoredDocuments,
} from './stored-documents.ts'
import { itemsIn, itemsOf, type PageReader, type StoredPage } from './stored-pages.ts'

export interface CatalogEntry extends StoredDocument {
  readonly collection: Collection
  readonly key: string
}

/** The documents of a collection at some moment, in key order, in chunks of about a page. */
export interface CollectionSnapshot {
  readonly collection: Collection
  /** Bytes as a checkpoint stores them, unless the document was changed since. */
  readonly documents: AsyncIterable<Iterable<Buffer | KeyedDocument>> | Iterable<Iterable<KeyedDocument>>
}

interface CatalogCollection {
  /** The documents of the checkpoint, which are read from its file. */
  stored: StoredDocuments
  /** The changes since the checkpoint. */
  changed: DocumentLayer
  /** The changes before the checkpoint that is being written began. */
  frozen: DocumentLayer | undefined
  /** Stored documents that the current group needs. Undefined: there is none. */
  readonly retained: Map<string, StoredDocument | undefined>
}

/** The documents of all collections: those of the checkpoint, and in memory those changed since. */
export class DirectoryCatalog {
  readonly #collections = new Map<Collection, CatalogCollection>()

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    const documents = this.#collections.get(collection)
    if (documents === undefined) return undefined
    const document = await findDocument(documents, key)
    return document && copyOut(collection, key, document)
  }

  /** The version of a document that is in memory, or was retained; null if there is none. */
  versionOf(collection: Collection, key: string): number | null {
    const documents = this.#collections.get(collection)
    if (documents === undefined) return null
    const known = mapWith(documents, key)
    if (known === undefined && documents.stored.pageCount > 0) {
      throw new RangeError(`a document of ${collection} was not loaded`)
    }
    return known?.get(key)?.version ?? null
  }

  /** Loads a document for {@link versionOf}, until {@link release}. Undefined if it is in memory. */
  retain(collection: Collection, key: string): Promise<void> | undefined {
    const documents = this.#collections.get(collection)
    if (documents === undefined || documents.stored.pageCount === 0) return undefined
    if (mapWith(documents, key) !== undefined) return undefined
    return findDocument(documents, key).then((document) => {
      documents.retained.set(key, document)
    })
  }

  /** Drops what was retained. */
  release(): void {
    for (const { retained } of this.#collections.values()) if (retained.size > 0) retained.clear()
  }

  /** Resolves to the documents at one moment, however long reading them takes. */
  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    const documents = this.#collections.get(collection)
    if (documents === undefined || range.limit <= 0) return []
    const first = compareUtf8(range.prefix, range.after) > 0 ? range.prefix : range.after
    for (let itemsMin = range.limit + 1; ; ) {
      const { stored } = documents
      let pages: PageRange
      try {
        pages = await pagesFrom(stored, first, range.prefix, itemsMin)
      } catch (error) {
        if (stored === documents.stored) throw error
        continue
      }
      if (stored !== documents.stored) continue
      const found = listIn(documents, pages, first, range)
      if (found !== undefined) {
        return found.map(({ key, document }) => copyOut(collection, key, document!))
      }
      // Many of the stored documents are deleted.
      itemsMin *= 2
    }
  }

  /** Adds documents of a checkpoint, whose bytes are kept. Throws `RangeError` if they are malformed. */
  addStored(collection: Collection, bytes: Buffer): void {
    this.#collection(collection).stored.add(bytes)
  }

  /** Sets the pages of a collection, which are read on use. */
  setPlaces(collection: Collection, places: DocumentPlaces, read: PageReader): void {
    this.#collection(collection).stored = new StoredDocuments(read, places)
  }

  /** The number of documents that {@link addStored} added. */
  get storedSize(): number {
    let size = 0
    for (const { stored } of this.#collections.values()) size += stored.added
    return size
  }

  /** How many documents were changed since the checkpoint. */
  get changedSize(): number {
    let size = 0
    for (const { changed } of this.#collections.values()) size += changed.size
    return size
  }

  set(collection: Collection, key: string, document: StoredDocument): void {
    this.#collection(collection).changed.set(key, document)
  }

  delete(collection: Collection, key: string): void {
    const documents = this.#collections.get(collection)
    if (documents === undefined) return
    const isBelow = documents.stored.pageCount > 0 || documents.frozen?.has(key)
    if (isBelow) documents.changed.set(key, undefined)
    else documents.changed.delete(key)
  }

  /** Captures the documents as they are now for a checkpoint, until {@link rebase} or {@link thaw}. */
  freeze(): void {
    for (const documents of this.#collections.values()) {
      documents.frozen = documents.changed
      documents.changed = new DocumentLayer()
    }
  }

  /** Gives up the checkpoint. */
  thaw(): void {
    for (const documents of this.#collections.values()) {
      if (documents.frozen === undefined) continue
      for (const { key, document } of documents.frozen.from('')) {
        if (!documents.changed.has(key)) documents.changed.set(key, document)
      }
      documents.frozen = undefined
    }
  }

  /** Continues with a checkpoint of what was captured. */
  rebase(checkpoint: DirectoryCatalog): void {
    for (const collection of checkpoint.#collections.keys()) this.#collection(collection)
    for (const [collection, documents] of this.#collections) {
      documents.stored = checkpoint.#collections.get(collection)?.stored ?? new StoredDocuments()
      documents.frozen = undefined
    }
    this.release()
  }

  /** The documents that were captured. */
  snapshot(): CollectionSnapshot[] {
    return [...this.#collections].map(([collection, { stored, frozen }]) => {
      return { collection, documents: chunksOf(stored, frozen?.from('') ?? []) }
    })
  }

  /** Iterates over all documents in key order. They must not change meanwhile. */
  async *entries(): AsyncGenerator<CatalogEntry, void, undefined> {
    for (const [collection, documents] of this.#collections) {
      for await (const chunk of chunksOf(documents.stored, changesFrom(documents, ''))) {
        for (const entry of chunk) {
          const { key, document } = Buffer.isBuffer(entry) ? decodeDocument(entry) : entry
          yield { collection, key, ...document! }
        }
      }
    }
  }

  #collection(collection: Collection): CatalogCollection {
    let documents = this.#collections.get(collection)
    if (documents === undefined) {
      documents = {
        stored: new StoredDocuments(),
        changed: new DocumentLayer(),
        frozen: undefined,
        retained: new Map(),
      }
      this.#collections.set(collection, documents)
    }
    return documents
  }
}

/** The latest map in memory that has the document, or knows that it does not exist. */
function mapWith(
  { changed, frozen, retained }: CatalogCollection,
  key: string,
): Pick<ReadonlyMap<string, StoredDocument | undefined>, 'get'> | undefined {
  if (changed.has(key)) return changed
  if (frozen?.has(key)) return frozen
  return retained.has(key) ? retained : undefined
}

async function findDocument(documents: CatalogCollection, key: string): Promise<StoredDocument | undefined> {
  for (;;) {
    const known = mapWith(documents, key)
    if (known !== undefined) return known.get(key)
    const { stored } = documents
    let document: StoredDocument | undefined
    try {
      const found = stored.get(key)
      document = found instanceof Promise ? await found : found
    } catch (error) {
      if (stored === documents.stored) throw error
      continue
    }
    // A checkpoint may have replaced this one meanwhile, and the document may have been changed.
    if (stored === documents.stored && mapWith(documents, key) === undefined) return document
  }
}

/** Consecutive pages. */
interface PageRange {
  readonly pages: readonly StoredPage[]
  /** The first key of the next page, if it may have more documents of the list. */
  readonly end: Buffer | undefined
}

/** Loads the pages with the documents from `first` on, until they have this many, or the prefix ends. */
async function pagesFrom(
  stored: StoredDocuments,
  first: string,
  prefix: string,
  itemsMin: number,
): Promise<PageRange> {
  const pages: StoredPage[] = []
  if (stored.pageCount === 0) return { pages, end: undefined }
  const start = Buffer.from(first)
  let index = stored.pageIndexOf(start)
  const endIndex = stored.endIndexOf(Buffer.from(prefix), index)
  for (let items = 0; index < endIndex && items < itemsMin; index++) {
    // The first page tells how many pages are needed.
    const wanted = pages.length === 0 ? 1 : Math.ceil((itemsMin - items) / Math.max(itemsOf(pages[0]!), 1))
    const reading = stored.readAhead(index, Math.min(index + wanted, endIndex))
    if (reading !== undefined) await reading
    const found = stored.page(index)
    const page = found instanceof Promise ? await found : found
    items += itemsOf(page) - (pages.length === 0 ? indexInPage(page, start) : 0)
    pages.push(page)
  }
  return { pages, end: index < endIndex ? stored.firstKeyOf(index) : undefined }
}

/** Returns undefined if the pages have too few documents. */
function listIn(
  documents: CatalogCollection,
  { pages, end }: PageRange,
  first: string,
  { prefix, after, limit }: ListRange,
): KeyedDocument[] | undefined {
  const found: KeyedDocument[] = []
  /** Returns whether the list is complete. */
  const take = (keyed: KeyedDocument): boolean => {
    if (!keyed.key.startsWith(prefix)) return true
    if (keyed.document !== undefined && keyed.key !== after) found.push(keyed)
    return found.length >= limit
  }
  const start = Buffer.from(first)
  const changes = changesFrom(documents, first)[Symbol.iterator]()
  let change = changes.next()
  // Without an iterator of items: a list after opening would run most of it before it is compiled.
  for (const page of pages) {
    for (let i = page === pages[0] ? indexInPage(page, start) : 0; i < itemsOf(page); i++) {
      const stored = documentAt(page, i)
      let isReplaced = false
      for (; change.done !== true; change = changes.next()) {
        const order = compareUtf8(change.value.key, stored.key)
        if (order > 0) break
        if (take(change.value)) return found
        isReplaced = order === 0
      }
      if (!isReplaced && take(stored)) return found
    }
  }
  const endKey = end?.toString()
  for (; change.done !== true; change = changes.next()) {
    if (endKey !== undefined && compareUtf8(change.value.key, endKey) >= 0) return undefined
    if (take(change.value)) return found
  }
  return end === undefined ? found : undefined
}

/** The changes since the checkpoint, the latest of each document. */
function changesFrom({ changed, frozen }: CatalogCollection, first: string): Iterable<KeyedDocument> {
  if (frozen === undefined) return changed.from(first)
  return overlaid(frozen.from(first), changed.from(first))
}

/** Stored documents with changes on top, without deleted ones, in a chunk for each page. */
async function* chunksOf(
  stored: StoredDocuments,
  changes: Iterable<KeyedDocument>,
): AsyncGenerator<(Buffer | KeyedDocument)[], void, undefined> {
  const rest = changes[Symbol.iterator]()
  let next = rest.next()
  const changesBefore = (end: Buffer | undefined): KeyedDocument[] => {
    const taken: KeyedDocument[] = []
    const endKey = end?.toString()
    for (; next.done !== true; next = rest.next()) {
      if (endKey !== undefined && compareUtf8(next.value.key, endKey) >= 0) break
      taken.push(next.value)
    }
    return taken
  }
  for (let index = 0; index < stored.pageCount; index++) {
    const page = await stored.page(index)
    yield present(overlaid(itemsIn(page), changesBefore(stored.firstKeyOf(index + 1))))
  }
  if (next.done !== true) yield present(changesBefore(undefined))
}

function present(entries: Iterable<Buffer | KeyedDocument>): (Buffer | KeyedDocument)[] {
  return [...entries].filter((entry) => Buffer.isBuffer(entry) || entry.document !== undefined)
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
