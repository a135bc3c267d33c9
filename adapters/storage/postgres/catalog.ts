import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { keyBounds } from '../../../src/storage/document-keys.ts'
import type { PostgresRow } from './client.ts'
import type { Database } from './database.ts'
import type { Tables } from './schema.ts'
import { prepared } from './statement.ts'
import { bytesOf, numberOf } from './values.ts'

/** Reads documents. */
export class PostgresCatalog {
  readonly #database: Database
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database, tables: Tables) {
    this.#database = database
    this.#statements = statementsOf(tables)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    const [row] = await this.#database.query(this.#statements.get, [collection, utf8(key)])
    return row && documentOf(row)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    const bounds = keyBounds(range)
    if (bounds === undefined) return []
    const { listAfter, listFrom } = this.#statements
    const rows = await this.#database.query(bounds.isFromExcluded ? listAfter : listFrom, [
      collection,
      bounds.from,
      bounds.to,
      range.limit,
    ])
    return rows.map(documentOf)
  }
}

function statementsOf({ documents }: Tables) {
  const list = (comparison: string) =>
    prepared(`SELECT key, value, version FROM ${documents}
      WHERE collection = $1 AND key ${comparison} $2 AND key < $3 AND value IS NOT NULL
      ORDER BY key LIMIT $4`)
  return {
    get: prepared(`SELECT key, value, version FROM ${documents}
      WHERE collection = $1 AND key = $2 AND value IS NOT NULL`),
    listFrom: list('>='),
    listAfter: list('>'),
  }
}

function documentOf({ key, value, version }: PostgresRow): Document {
  return { key: lossyTextOf(bytesOf(key)), value: JSON.parse(String(value)), version: numberOf(version) }
}
