import { utf8 } from '../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { keyBounds } from '../../../src/storage/document-keys.ts'
import type { DatabaseConnection } from './connection.ts'
import type { DocumentKey, DocumentRow } from './schema.ts'

export interface DocumentName {
  readonly collection: Collection
  readonly key: string
}

export function documentKey({ collection, key }: DocumentName): DocumentKey {
  return [collection, new Uint8Array(utf8(key))]
}

export async function getDocument(
  connection: DatabaseConnection,
  collection: Collection,
  key: string,
): Promise<Document | undefined> {
  const row = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').get(documentKey({ collection, key })),
  )
  return row === undefined ? undefined : documentOf(row)
}

export async function listDocuments(
  connection: DatabaseConnection,
  collection: Collection,
  query: ListRange,
): Promise<Document[]> {
  const bounds = keyBounds(query)
  if (bounds === undefined) return []
  const from = bounds.from.length === 0 ? [collection] : [collection, new Uint8Array(bounds.from)]
  const range = IDBKeyRange.bound(from, [collection, bounds.to], bounds.isFromExcluded, true)
  const rows = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').getAll(range, query.limit),
  )
  return rows.map(documentOf)
}

function documentOf({ key, text, version }: DocumentRow): Document {
  return { key, value: JSON.parse(text), version }
}
