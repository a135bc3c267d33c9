import { ByteReader, type ByteWriter } from '../files/bytes.ts'
import { itemAt, itemsOf, lowestIndex, type StoredPage } from './stored-pages.ts'

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
  readonly #pages: StoredPage[] = []
  #size = 0

  /** The number of documents. */
  get size(): number {
    return this.#size
  }

  /**
   * Adds the items of a frame, and keeps the bytes. Throws `RangeError` if they are malformed or not in
   * order.
   */
  add(bytes: Buffer): void {
    const starts: number[] = []
    const fields = new ByteReader(bytes)
    let before = this.#lastKey()
    while (fields.left > 0) {
      starts.push(fields.offset)
      const key = fields.raw(fields.varint())
      if (before !== undefined && before.compare(key) >= 0) throw new RangeError('documents are not in order')
      before = key
      fields.varint()
      fields.skipString()
    }
    this.#size += starts.length
    starts.push(bytes.length)
    this.#pages.push({ bytes, starts: Uint32Array.from(starts) })
  }

  get(key: string): StoredDocument | undefined {
    const [item] = this.items(key)
    return item === undefined || keyOf(item) !== key ? undefined : decodeDocument(item).document
  }

  /** Iterates over the items from the first whose key is not before `key` in the order of UTF-8. */
  *items(key = ''): Generator<Buffer, void, undefined> {
    const target = Buffer.from(key)
    const reached = (page: StoredPage, index: number) => keyBytes(itemAt(page, index)).compare(target) >= 0
    const isPageReached = (index: number) => {
      const page = this.#pages[index]!
      return reached(page, itemsOf(page) - 1)
    }
    let index = lowestIndex(this.#pages.length, isPageReached)
    let page = this.#pages[index]
    if (page === undefined) return
    const first = page
    let next = lowestIndex(itemsOf(first), (item) => reached(first, item))
    for (; page !== undefined; page = this.#pages[++index], next = 0) {
      for (; next < itemsOf(page); next++) yield itemAt(page, next)
    }
  }

  #lastKey(): Buffer | undefined {
    const page = this.#pages.at(-1)
    return page && keyBytes(itemAt(page, itemsOf(page) - 1))
  }
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

function keyBytes(item: Buffer): Buffer {
  const fields = new ByteReader(item)
  return fields.raw(fields.varint())
}
