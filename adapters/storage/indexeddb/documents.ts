import { compareUtf8, utf8 } from '../../../src/model/bytes.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import type { Connection } from './connection.ts'
import type { DocumentKey, DocumentRow } from './schema.ts'

export interface DocumentName {
  readonly collection: Collection
  readonly key: string
}

export function documentKey({ collection, key }: DocumentName): DocumentKey {
  return [collection, new Uint8Array(utf8(key))]
}

export async function getDocument(
  connection: Connection,
  collection: Collection,
  key: string,
): Promise<Document | undefined> {
  const row = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').get(documentKey({ collection, key })),
  )
  return row === undefined ? undefined : documentOf(row)
}

export async function listDocuments(
  connection: Connection,
  collection: Collection,
  { prefix, after, limit }: ListRange,
): Promise<Document[]> {
  const isAfter = compareUtf8(after, prefix) >= 0
  if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return []
  const key = isAfter ? after : prefix
  const from = key === '' ? [collection] : documentKey({ collection, key })
  // UTF-8 never contains the byte 0xff.
  const end = new Uint8Array([...utf8(prefix), 0xff])
  const range = IDBKeyRange.bound(from, [collection, end], isAfter, true)
  const rows = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').getAll(range, limit),
  )
  return rows.map(documentOf)
}

function documentOf({ key, text, version }: DocumentRow): Document {
  return { key, value: JSON.parse(text), version }
}
