import type { Connection } from './connection.ts'

/** The metered bytes of each log. */
export function measureLogs(connection: Connection, logIds: readonly string[]): Promise<number[]> {
  return connection.read(['logs'], async (transaction) => {
    const store = transaction.objectStore('logs')
    const rows = await Promise.all(logIds.map((logId) => store.get(logId)))
    return rows.map((row) => row?.meteredBytes ?? 0)
  })
}
