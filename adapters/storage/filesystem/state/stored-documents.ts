import { ByteReader, type ByteWriter } from '../files/bytes.ts'
import {
  itemAt,
  itemsOf,
  lowestIndex,
  type PagePlace,
  type PageReader,
  type StoredPage,
  StoredPages,
} from './stored-pages.ts'

/**
 * A document with its value as JSON text. Each reader parses it, which is the copy that the contract
 * requires.
 */
export interface StoredDocument {
  readonly text: string
  readonly version: number
}

/** The documents of a collection as a checkpoint stores them, in key order. */
export class StoredDocuments {
  readonly #pages: StoredPages
  readonly #firstKeys: Buffer[] = []
  /** The last key of the last page that {@link add} added. */
  #lastKey: Buffer | undefined
  #added = 0

  /** @param read Reads the pages that {@link addPlace} adds. */
  constructor(read?: PageReader) {
    this.#pages = new StoredPages(decodePage, read)
  }

  get pageCount(): number {
    return this.#pages.count
  }

  /** The number of documents that {@link add} added. */
  get added(): number {
    return this.#added
  }

  /**
   * Adds the items of a frame, and keeps the bytes. Throws `RangeError` if they are malformed or not in
   * order.
   */
  add(bytes: Buffer): void {
    const page = documentPage(bytes)
    const items = itemsOf(page)
    if (items === 0) return
    const firstKey = keyBytes(itemAt(page, 0))
    assertOrder(this.#lastKey, firstKey)
    this.#lastKey = keyBytes(itemAt(page, items - 1))
    this.#added += items
    this.#firstKeys.push(firstKey)
    this.#pages.add(page)
  }

  /** Adds a page that is read on use. */
  addPlace(firstKey: Buffer, place: PagePlace): void {
    this.#firstKeys.push(firstKey)
    this.#pages.add(place)
  }

  page(index: number): StoredPage | Promise<StoredPage> {
    return this.#pages.at(index)
  }

  firstKeyOf(page: number): Buffer | undefined {
    return this.#firstKeys[page]
  }

  /** The index of the page in which a key would be. There must be a page. */
  pageIndexOf(key: Buffer): number {
    const next = lowestIndex(this.#firstKeys.length, (index) => this.#firstKeys[index]!.compare(key) > 0)
    return Math.max(next - 1, 0)
  }

  async get(key: string): Promise<StoredDocument | undefined> {
    if (this.pageCount === 0) return undefined
    const bytes = Buffer.from(key)
    const page = await this.page(this.pageIndexOf(bytes))
    const index = indexInPage(page, bytes)
    if (index === itemsOf(page) || !keyBytes(itemAt(page, index)).equals(bytes)) return undefined
    return decodeDocument(itemAt(page, index)).document
  }
}

/** The index of the first item of a page whose key is not before `key` in the order of UTF-8. */
export function indexInPage(page: StoredPage, key: Buffer): number {
  return lowestIndex(itemsOf(page), (index) => keyBytes(itemAt(page, index)).compare(key) >= 0)
}

function decodePage(payload: Buffer): StoredPage {
  const fields = new ByteReader(payload)
  // The letter and the name of the collection.
  fields.byte()
  fields.skipString()
  return documentPage(fields.raw(fields.left))
}

/** The page with these items. Throws `RangeError` if they are malformed or not in order. */
export function documentPage(bytes: Buffer): StoredPage {
  const starts: number[] = []
  const fields = new ByteReader(bytes)
  let before: Buffer | undefined
  while (fields.left > 0) {
    starts.push(fields.offset)
    const key = fields.raw(fields.varint())
    assertOrder(before, key)
    before = key
    fields.varint()
    fields.skipString()
  }
  starts.push(bytes.length)
  return { bytes, starts: Uint32Array.from(starts) }
}

function assertOrder(before: Buffer | undefined, key: Buffer): void {
  if (before !== undefined && before.compare(key) >= 0) throw new RangeError('documents are not in order')
}

/** A document with its key. */
export interface KeyedDocument {
  readonly key: string
  /** Undefined: deleted. */
  readonly document: StoredDocument | undefined
}

/** Writes an item. The document must not be deleted. */
export function writeDocument(writer: ByteWriter, { key, document }: KeyedDocument): void {
  writer.string(key)
  writer.varint(document!.version)
  writer.string(document!.text)
}

export function keyOf(item: Buffer): string {
  return new ByteReader(item).string()
}

export function decodeDocument(item: Buffer): KeyedDocument {
  const fields = new ByteReader(item)
  return { key: fields.string(), document: { version: fields.varint(), text: fields.string() } }
}

/** The key of an item as bytes: a view. */
export function keyBytes(item: Buffer): Buffer {
  const fields = new ByteReader(item)
  return fields.raw(fields.varint())
}
