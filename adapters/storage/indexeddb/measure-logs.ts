import type { Connection } from './connection.ts'
import { meteredBytesOfLog, readLog } from './stored-log.ts'

/** The metered bytes of each log. */
export function measureLogs(connection: Connection, logIds: readonly string[]): Promise<number[]> {
  return connection.read(['logs', 'appends'], async (transaction) => {
    const logs = await Promise.all(logIds.map((logId) => readLog(transaction, logId)))
    return logs.map((log) => (log === undefined ? 0 : meteredBytesOfLog(log)))
  })
}
