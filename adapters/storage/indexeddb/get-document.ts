import type { Collection, Document } from '../../../src/storage/contract.ts'
import type { Connection } from './connection.ts'
import { documentKey } from './document-key.ts'
import type { DocumentRow } from './schema.ts'

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

export function documentOf({ key, text, version }: DocumentRow): Document {
  return { key, value: JSON.parse(text), version }
}
