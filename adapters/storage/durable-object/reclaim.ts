import { extendedExpiry, isExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { Head, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { ObjectDatabase, SqlBinding, SqlRow } from './database.ts'
import type { ObjectLogs } from './logs.ts'

/** Frees expired and trimmed blocks, and those of deleted logs. Part of a transaction. */
export function reclaimLogRows(
  db: ObjectDatabase,
  logs: ObjectLogs,
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
    for (const block of found) freeBlock(block)
    left -= found.length
    return left === 0
  }

  function freeBlock({ log, end_seq_num, metered_bytes }: SqlRow): void {
    db.run('DELETE FROM headwater_blocks WHERE log = ? AND end_seq_num = ?', log!, end_seq_num!)
    db.run('UPDATE headwater_logs SET metered_bytes = metered_bytes - ? WHERE id = ?', metered_bytes!, log!)
    touched.add(log as string)
  }

  /** Frees expired blocks, and stores the expiry of those that are extended. */
  function freeExpired(): void {
    const found = db.all(
      `SELECT log, end_seq_num, first_seq_num, metered_bytes, expires_at FROM headwater_blocks
       WHERE expires_at <= ? LIMIT ?`,
      now,
      left,
    )
    const heads = new Map(found.map(({ log }) => [log!, undefined as Head | undefined]))
    for (const log of heads.keys()) heads.set(log, logs.headOf(log as string))
    for (const block of found) {
      const { log, end_seq_num, first_seq_num, expires_at } = block
      const stored = { firstSeqNum: first_seq_num as number, expiresAt: expires_at as number }
      const expiresAt = extendedExpiry(stored, heads.get(log!)?.extensions)
      if (isExpired(expiresAt, now)) freeBlock(block)
      else {
        db.run(
          'UPDATE headwater_blocks SET expires_at = ? WHERE log = ? AND end_seq_num = ? AND part = 0',
          expiresAt,
          log!,
          end_seq_num!,
        )
      }
    }
    left -= found.length
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

  freeExpired()
  while (left > 0) {
    const due = dueLog()
    if (due === undefined || !freeDue(due, logs.headOf(due))) break
  }
  // Expired blocks may have been the first of a trimmed log.
  return {
    more: dueLog() !== undefined || db.first(`${EXPIRED} LIMIT 1`, now) !== undefined,
    logIds: [...touched].filter((logId) => logs.headOf(logId) !== undefined),
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
