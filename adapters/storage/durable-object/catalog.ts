import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { DocumentUpdate, DocumentVersions } from '../../../src/storage/commit-plan.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { keyBounds } from '../../../src/storage/document-keys.ts'
import type { ObjectDatabase, SqlRow } from './database.ts'

/** The documents. Keys are UTF-8 bytes, because text with U+0000 is not portable in SQLite. */
export class ObjectCatalog implements DocumentVersions {
  readonly #db: ObjectDatabase

  constructor(db: ObjectDatabase) {
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

  list(collection: Collection, range: ListRange): Document[] {
    const bounds = keyBounds(range)
    if (bounds === undefined) return []
    const rows = this.#db.all(
      `SELECT key, value, version FROM headwater_documents
       WHERE collection = ? AND key ${bounds.isFromExcluded ? '>' : '>='} ? AND key < ? ORDER BY key LIMIT ?`,
      collection,
      bounds.from,
      bounds.to,
      range.limit,
    )
    return rows.map(documentOf)
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.get(collection, key)?.version
  }

  /** Part of a transaction. */
  nextVersion(): number {
    const row = this.#db.first('UPDATE headwater_meta SET version = version + 1 RETURNING version')
    return row!.version as number
  }

  /** Part of a transaction. */
  apply({ collection, key, content }: DocumentUpdate): void {
    if (content === undefined) {
      this.#db.run('DELETE FROM headwater_documents WHERE collection = ? AND key = ?', collection, utf8(key))
      return
    }
    const { text, version } = content
    this.#db.run(
      'INSERT OR REPLACE INTO headwater_documents VALUES (?, ?, ?, ?)',
      collection,
      utf8(key),
      text,
      version,
    )
  }
}

function documentOf({ key, value, version }: SqlRow): Document {
  return {
    key: lossyTextOf(new Uint8Array(key as ArrayBuffer)),
    value: JSON.parse(value as string),
    version: version as number,
  }
}
