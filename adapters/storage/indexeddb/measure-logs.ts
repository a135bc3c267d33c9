import { lastBehind } from './append-row.ts'
import type { Connection } from './connection.ts'

/** The metered bytes of each log. */
export function measureLogs(connection: Connection, logIds: readonly string[]): Promise<number[]> {
  return connection.read(['logs', 'appends'], (transaction) =>
    Promise.all(
      logIds.map(async (logId) => {
        const row = await transaction.objectStore('logs').get(logId)
        if (row === undefined) return 0
        return row.meteredBytes + ((await lastBehind(transaction, logId, row))?.meteredBytes ?? 0)
      }),
    ),
  )
}
