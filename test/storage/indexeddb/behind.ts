import type { IDBPDatabase } from 'idb'
import type { AppendRow } from '../../../adapters/storage/indexeddb/append-row.ts'
import type { AppendKey, Schema } from '../../../adapters/storage/indexeddb/schema.ts'

/** Of everything that is, or was, behind the row of a log. */
export function keysOf(logId: string): IDBKeyRange {
  return IDBKeyRange.bound([logId], [logId, []])
}

/** What is, or was, behind the row of a log, and under which keys. */
export async function behindRowOf(
  db: IDBPDatabase<Schema>,
  logId: string,
): Promise<{ readonly key: AppendKey; readonly row: AppendRow }[]> {
  const transaction = db.transaction('appends')
  const [keys, rows] = await Promise.all([
    transaction.store.getAllKeys(keysOf(logId)),
    transaction.store.getAll(keysOf(logId)),
  ])
  return rows.flatMap((row, index) => ('head' in row ? [{ key: keys[index]!, row }] : []))
}
