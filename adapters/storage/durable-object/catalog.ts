import { compareUtf8, lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { CatalogChange, Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import type { Database, Row } from './database.ts'

type DocumentChange = Extract<CatalogChange, { readonly key: string }>

/** The documents. Keys are UTF-8 bytes, because text with U+0000 is not portable in SQLite. */
export class Catalog {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  get(collection: Collection, key: string): Document | undefined {
    const row = this.#db.first(
      'SELECT key, value, version FROM headwater_documents WHERE collection = ? AND key = ?',
      collection,
      utf8(key),
    )
    return row && documentOf(row)
  }

  list(collection: Collection, { prefix, after, limit }: ListRange): Document[] {
    const isAfter = compareUtf8(after, prefix) >= 0
    if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return []
    const rows = this.#db.all(
      `SELECT key, value, version FROM headwater_documents
       WHERE collection = ? AND key ${isAfter ? '>' : '>='} ? AND key < ? ORDER BY key LIMIT ?`,
      collection,
      utf8(isAfter ? after : prefix),
      // UTF-8 never contains the byte 0xff.
      Uint8Array.of(...utf8(prefix), 0xff),
      limit,
    )
    return rows.map(documentOf)
  }

  /** Part of a transaction. Throws `StorageConflict` if the expectation does not hold. */
  apply(change: DocumentChange): void {
    const { kind, collection, key, expect } = change
    if (expect !== undefined && (this.get(collection, key)?.version ?? null) !== expect) {
      throw new StorageConflict(
        `document ${JSON.stringify(key)} in ${collection} does not have the expected version`,
      )
    }
    if (kind === 'put') {
      this.#db.run('UPDATE headwater_meta SET version = version + 1')
      this.#db.run(
        `INSERT OR REPLACE INTO headwater_documents SELECT ?, ?, ?, version FROM headwater_meta`,
        collection,
        utf8(key),
        JSON.stringify(change.value),
      )
    } else if (kind === 'delete') {
      this.#db.run('DELETE FROM headwater_documents WHERE collection = ? AND key = ?', collection, utf8(key))
    }
  }
}

function documentOf({ key, value, version }: Row): Document {
  return {
    key: lossyTextOf(new Uint8Array(key as ArrayBuffer)),
    value: JSON.parse(value as string),
    version: version as number,
  }
}
