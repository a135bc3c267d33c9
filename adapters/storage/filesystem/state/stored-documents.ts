import { compareUtf8 } from '../../../../src/model/bytes.ts'
import { OrderedList } from '../../../../src/storage/ordered-list.ts'
import { ByteReader, type ByteWriter } from '../files/bytes.ts'
import {
  itemAt,
  itemsOf,
  lowestIndex,
  NumberList,
  type PagePlace,
  PagePlaces,
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

/** The pages of a collection as the index describes them. */
export class DocumentPlaces {
  readonly frames = new PagePlaces()
  readonly firstKeys = new KeyList()

  add(frame: PagePlace, firstKey: Buffer): void {
    this.frames.add(frame)
    this.firstKeys.push(firstKey)
  }
}

/** The documents of a collection as a checkpoint stores them, in key order. */
export class StoredDocuments {
  readonly #pages: StoredPages
  readonly #firstKeys: KeyList
  /** The last key of the last page that {@link add} added. */
  #lastKey: Buffer | undefined
  #added = 0

  /** @param places The pages that are read on use. */
  constructor(read?: PageReader, places = new DocumentPlaces()) {
    this.#pages = new StoredPages(documentsIn, documentPage, read, places.frames)
    this.#firstKeys = places.firstKeys
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

  page(index: number): StoredPage | Promise<StoredPage> {
    return this.#pages.at(index)
  }

  /** Reads pages that {@link page} will be asked for, if that is faster. */
  readAhead(start: number, end: number): Promise<void> | undefined {
    return this.#pages.readAhead(start, end)
  }

  firstKeyOf(page: number): Buffer | undefined {
    return page < this.#firstKeys.length ? this.#firstKeys.at(page) : undefined
  }

  /** The index of the page in which a key would be. There must be a page. */
  pageIndexOf(key: Buffer): number {
    const next = lowestIndex(this.#firstKeys.length, (index) => this.#firstKeys.compare(index, key) > 0)
    return Math.max(next - 1, 0)
  }

  /** The index of the page after `start` that begins with the first key past those with the prefix. */
  endIndexOf(prefix: Buffer, start: number): number {
    const isPast = (index: number): boolean => {
      return index > start && prefix.compare(this.#firstKeys.at(index).subarray(0, prefix.length)) < 0
    }
    return lowestIndex(this.#firstKeys.length, isPast)
  }

  get(key: string): StoredDocument | undefined | Promise<StoredDocument | undefined> {
    if (this.pageCount === 0) return undefined
    const bytes = Buffer.from(key)
    return this.#pages.find(this.pageIndexOf(bytes), (items) => findDocument(items, bytes))
  }
}

/** The index of the first item of a page whose key is not before `key` in the order of UTF-8. */
export function indexInPage(page: StoredPage, key: Buffer): number {
  return lowestIndex(itemsOf(page), (index) => keyBytes(itemAt(page, index)).compare(key) >= 0)
}

/** Returns the document with this key. Throws `RangeError` if the item after it is out of order. */
function findDocument(items: Buffer, key: Buffer): StoredDocument | undefined {
  const fields = new ByteReader(items)
  let found: StoredDocument | undefined
  while (fields.left > 0) {
    const length = fields.varint()
    const start = fields.offset
    fields.skip(length)
    const order = items.compare(key, 0, key.length, start, fields.offset)
    if (found !== undefined && order <= 0) throw disordered()
    if (order > 0) break
    if (order === 0) found = readContent(fields)
    else {
      fields.varint()
      fields.skipString()
    }
  }
  return found
}

/** Returns the items in the payload of a frame, as a view. */
function documentsIn(payload: Buffer): Buffer {
  const fields = new ByteReader(payload)
  // The letter and the name of the collection.
  fields.byte()
  fields.skipString()
  return fields.raw(fields.left)
}

/** The page with these items. Throws `RangeError` if they are malformed or not in order. */
export function documentPage(bytes: Buffer): StoredPage {
  const starts: number[] = []
  const fields = new ByteReader(bytes)
  let [before, beforeEnd] = [0, 0]
  while (fields.left > 0) {
    starts.push(fields.offset)
    const length = fields.varint()
    const key = fields.offset
    fields.skip(length)
    if (beforeEnd > 0 && !isBefore(bytes, before, beforeEnd, key, fields.offset)) throw disordered()
    before = key
    beforeEnd = fields.offset
    fields.varint()
    fields.skipString()
  }
  starts.push(bytes.length)
  return { bytes, starts: Uint32Array.from(starts) }
}

/**
 * Whether the key at `start` is less than the one at `otherStart`. For a page of keys, this takes half as
 * long as a view or a string for each, and leaves nothing to collect.
 */
function isBefore(bytes: Buffer, start: number, end: number, otherStart: number, otherEnd: number): boolean {
  const shorter = Math.min(end - start, otherEnd - otherStart)
  for (let offset = 0; offset < shorter; offset++) {
    const difference = bytes[start + offset]! - bytes[otherStart + offset]!
    if (difference !== 0) return difference < 0
  }
  return end - start < otherEnd - otherStart
}

function assertOrder(before: Buffer | undefined, key: Buffer): void {
  if (before !== undefined && before.compare(key) >= 0) throw disordered()
}

function disordered(): RangeError {
  return new RangeError('documents are not in order')
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

function keyOf(item: Buffer): string {
  return new ByteReader(item).string()
}

export function decodeDocument(item: Buffer): KeyedDocument {
  return readDocument(new ByteReader(item))
}

/** Decodes an item of a page. */
export function documentAt({ bytes, starts }: StoredPage, index: number): KeyedDocument {
  return readDocument(new ByteReader(bytes, starts[index], starts[index + 1]))
}

function readDocument(fields: ByteReader): KeyedDocument {
  return { key: fields.string(), document: readContent(fields) }
}

function readContent(fields: ByteReader): StoredDocument {
  return { version: fields.varint(), text: fields.string() }
}

/** The key of an item as bytes: a view. */
export function keyBytes(item: Buffer): Buffer {
  const fields = new ByteReader(item)
  return fields.raw(fields.varint())
}

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

/** Keys as bytes, outside of the heap that a garbage collection visits. */
class KeyList {
  #bytes = Buffer.alloc(1024)
  readonly #ends = new NumberList()

  get length(): number {
    return this.#ends.length
  }

  push(key: Buffer): void {
    const start = this.#startOf(this.length)
    const end = start + key.length
    if (end > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#bytes.length))
      this.#bytes.copy(larger)
      this.#bytes = larger
    }
    key.copy(this.#bytes, start)
    this.#ends.push(end)
  }

  /** The key at an index below the length: a view. */
  at(index: number): Buffer {
    return this.#bytes.subarray(this.#startOf(index), this.#ends.at(index))
  }

  /** Compares the key at an index below the length with `key`, in byte order. */
  compare(index: number, key: Buffer): number {
    return this.#bytes.compare(key, 0, key.length, this.#startOf(index), this.#ends.at(index))
  }

  #startOf(index: number): number {
    return index === 0 ? 0 : this.#ends.at(index - 1)
  }
}
