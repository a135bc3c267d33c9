import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { DocumentUpdate, DocumentVersions } from '../../../src/storage/commit-plan.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
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

/** The documents of all collections. */
export class MemoryCatalog implements DocumentVersions {
  readonly #collections = new Map<Collection, StoredCollection>()
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

  /** A single counter for all documents: a version is never reused, even after a deletion. */
  nextVersion(): number {
    return ++this.#version
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.#collections.get(collection)?.documents.get(key)?.version
  }

  apply({ collection, key, content }: DocumentUpdate): void {
    const { documents, keys } = this.#collection(collection)
    if (content === undefined) {
      if (documents.delete(key)) keys.delete(key)
      return
    }
    if (!documents.has(key)) keys.add(key)
    documents.set(key, { text: joined(content.text), version: content.version })
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
