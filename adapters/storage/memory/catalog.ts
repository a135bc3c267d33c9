import { compareUtf8 } from '../../../src/model/bytes.ts'
import type { DocumentUpdate, DocumentVersions } from '../../../src/storage/commit-plan.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** The documents of all collections. */
export class MemoryCatalog implements DocumentVersions {
  readonly #documents = new Map<Collection, Documents>()
  #version = 0

  get(collection: Collection, key: string): Document | undefined {
    return this.#documents.get(collection)?.get(key)
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const found: Document[] = []
    const documents = this.#documents.get(collection)
    if (documents === undefined || limit <= 0) return found
    for (const key of documents.keysFrom(compareUtf8(after, prefix) > 0 ? after : prefix)) {
      if (key === after) continue
      if (!key.startsWith(prefix)) break
      found.push(documents.get(key)!)
      if (found.length >= limit) break
    }
    return found
  }

  /** A single counter for all documents: a version is never reused, even after a deletion. */
  nextVersion(): number {
    return ++this.#version
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.#documents.get(collection)?.versionOf(key)
  }

  apply({ collection, key, content }: DocumentUpdate): void {
    const documents = this.#documents.get(collection) ?? new Documents()
    this.#documents.set(collection, documents)
    if (content === undefined) documents.delete(key)
    else documents.set(key, content)
  }
}

/** A value as JSON text. Each reader parses it, which is the copy that the contract requires. */
interface DocumentText {
  readonly text: string
  readonly version: number
}

/** The documents of a collection. */
class Documents {
  readonly #texts = new Map<string, DocumentText>()
  readonly #keys = new OrderedList<string>(compareUtf8)

  get(key: string): Document | undefined {
    const document = this.#texts.get(key)
    return document && { key, value: JSON.parse(document.text), version: document.version }
  }

  versionOf(key: string): number | undefined {
    return this.#texts.get(key)?.version
  }

  set(key: string, document: DocumentText): void {
    if (!this.#texts.has(key)) this.#keys.add(key)
    this.#texts.set(key, document)
  }

  delete(key: string): void {
    if (this.#texts.delete(key)) this.#keys.delete(key)
  }

  /** Iterates over the keys from the first one that is not before `first`, in the order of UTF-8. */
  keysFrom(first: string): Iterable<string> {
    return this.#keys.from((key) => compareUtf8(key, first) >= 0)
  }
}
