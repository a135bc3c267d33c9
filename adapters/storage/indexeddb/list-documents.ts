import { utf8 } from '../../../src/model/bytes.ts'
import { compareUtf8 } from '../../../src/model/compare-utf8.ts'
import type { Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import type { Connection } from './connection.ts'
import { documentKey } from './document-key.ts'
import { documentOf } from './get-document.ts'

export async function listDocuments(
  connection: Connection,
  collection: Collection,
  { prefix, after, limit }: ListRange,
): Promise<Document[]> {
  const isAfter = compareUtf8(after, prefix) >= 0
  if (limit <= 0 || (isAfter && !after.startsWith(prefix))) return []
  const key = isAfter ? after : prefix
  const from = key === '' ? [collection] : documentKey({ collection, key })
  // No UTF-8 has that byte.
  const behind = new Uint8Array([...utf8(prefix), 0xff])
  const range = IDBKeyRange.bound(from, [collection, behind], isAfter, true)
  const rows = await connection.read(['documents'], (transaction) =>
    transaction.objectStore('documents').getAll(range, limit),
  )
  return rows.map(documentOf)
}
