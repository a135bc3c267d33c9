import type { IDBPDatabase } from 'idb'

import type { Schema, TailKey, TailRow } from '../../../adapters/storage/indexeddb/schema.ts'

/** The keys of all tail rows and markers of a log, stale ones included. */
export function keysOf(logId: string): IDBKeyRange {
  return IDBKeyRange.bound([logId], [logId, []])
}

/** All tail rows of a log with their keys, stale ones included. */
export async function tailRowsOf(
  db: IDBPDatabase<Schema>,
  logId: string,
): Promise<{ readonly key: TailKey; readonly row: TailRow }[]> {
  const transaction = db.transaction('appends')
  const [keys, rows] = await Promise.all([
    transaction.store.getAllKeys(keysOf(logId)),
    transaction.store.getAll(keysOf(logId)),
  ])
  return rows.flatMap((row, index) => ('head' in row ? [{ key: keys[index]!, row }] : []))
}
