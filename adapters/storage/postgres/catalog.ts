import { compareUtf8, lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import type { Row } from './client.ts'
import type { Database } from './database.ts'
import type { Tables } from './schema.ts'
import { bytesOf, numberOf } from './values.ts'

/** Reads documents. */
export class Catalog {
  readonly #database: Database
  readonly #tables: Tables

  constructor(database: Database, tables: Tables) {
    this.#database = database
    this.#tables = tables
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    const [row] = await this.#database.query(
      `SELECT key, value, version FROM ${this.#tables.documents}
       WHERE collection = $1 AND key = $2 AND value IS NOT NULL`,
      [collection, utf8(key)],
    )
    return row && documentOf(row)
  }

  async list(collection: Collection, { prefix, after, limit }: ListRange): Promise<Document[]> {
    const isAfter = compareUtf8(after, prefix) >= 0
    if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return []
    const rows = await this.#database.query(
      `SELECT key, value, version FROM ${this.#tables.documents}
       WHERE collection = $1 AND key ${isAfter ? '>' : '>='} $2 AND key < $3 AND value IS NOT NULL
       ORDER BY key LIMIT $4`,
      // UTF-8 never contains the byte 0xff.
      [collection, utf8(isAfter ? after : prefix), Uint8Array.of(...utf8(prefix), 0xff), limit],
    )
    return rows.map(documentOf)
  }
}

function documentOf({ key, value, version }: Row): Document {
  return { key: lossyTextOf(bytesOf(key)), value: JSON.parse(String(value)), version: numberOf(version) }
}
