import { reclaimablePoint } from '../../../src/core/retention.ts'
import type { Head, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { Database, SqlBinding } from './database.ts'
import type { Logs } from './logs.ts'

/** Frees expired and trimmed blocks, and those of deleted logs. Part of a transaction. */
export function reclaim(
  db: Database,
  logs: Logs,
  { now, trimmedBefore, blocksMax }: ReclaimLimits,
): Reclaimed {
  const touched = new Set<string>()
  let left = blocksMax

  /** Frees at most `left` of the selected blocks. Returns whether the limit was reached. */
  function free(where: string, ...bindings: SqlBinding[]): boolean {
    const found = db.all(
      `SELECT log, end_seq_num, metered_bytes FROM headwater_blocks WHERE part = 0 AND ${where} LIMIT ?`,
      ...bindings,
      left,
    )
    for (const { log, end_seq_num, metered_bytes } of found) {
      db.run('DELETE FROM headwater_blocks WHERE log = ? AND end_seq_num = ?', log!, end_seq_num!)
      db.run('UPDATE headwater_logs SET metered_bytes = metered_bytes - ? WHERE id = ?', metered_bytes!, log!)
      touched.add(log as string)
    }
    left -= found.length
    return left === 0
  }

  function freeDue(logId: string, head: Head | undefined): boolean {
    if (head === undefined) {
      if (free('log = ?', logId)) return false
      db.run('DELETE FROM headwater_logs WHERE id = ?', logId)
      touched.delete(logId)
      return true
    }
    const point = reclaimablePoint(head.trims, trimmedBefore)
    free('log = ? AND end_seq_num <= ?', logId, point)
    logs.scheduleTrim(logId, head)
    return true
  }

  free('expires_at <= ?', now)
  while (left > 0) {
    const due = dueLog()
    if (due === undefined || !freeDue(due, logs.head(due))) break
  }
  // Expired blocks may have been the first of a trimmed log.
  return {
    more: dueLog() !== undefined || db.first(`${EXPIRED} LIMIT 1`, now) !== undefined,
    logIds: [...touched].filter((logId) => logs.head(logId) !== undefined),
  }

  function dueLog(): string | undefined {
    const row = db.first(
      'SELECT id FROM headwater_logs WHERE due_at <= ? LIMIT 1',
      Math.max(trimmedBefore, 0),
    )
    return row?.id as string | undefined
  }
}

const EXPIRED = 'SELECT 1 FROM headwater_blocks WHERE expires_at <= ?'
