import { blockExpiresAt, isBlockExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { Head, Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { SqliteRow, SqliteTables, SqliteValue } from './database.ts'
import type { SqliteLogs } from './logs.ts'

/** Frees expired and trimmed blocks, and those of deleted logs. Part of a transaction. */
export function reclaimBlocks(
  tables: SqliteTables,
  logs: SqliteLogs,
  { now, trimmedBefore, blocksMax }: ReclaimLimits,
): Reclaimed {
  const reclaim = new Reclaim(tables, logs, blocksMax)
  reclaim.freeExpired(now)
  // Deleted logs are due at 0.
  const dueLog = () =>
    tables.first('SELECT id FROM headwater_logs WHERE due_at <= ? LIMIT 1', Math.max(trimmedBefore, 0))
  for (let due = dueLog(); due !== undefined && reclaim.left > 0; due = dueLog()) {
    const logId = due.id as string
    const head = logs.headOf(logId)
    if (head === undefined) reclaim.freeDeleted(logId)
    else reclaim.freeTrimmed(logId, head, reclaimablePoint(head.trims, trimmedBefore))
  }
  const hasExpired = tables.first('SELECT 1 FROM headwater_blocks WHERE expires_at <= ? LIMIT 1', now)
  return {
    more: (dueLog() ?? hasExpired) !== undefined,
    logIds: [...reclaim.logIds].filter((logId) => logs.headOf(logId) !== undefined),
  }
}

class Reclaim {
  readonly #tables: SqliteTables
  readonly #logs: SqliteLogs
  /** How many blocks may still be freed. */
  left: number
  /** The logs whose blocks were freed. */
  readonly logIds = new Set<string>()

  constructor(tables: SqliteTables, logs: SqliteLogs, blocksMax: number) {
    this.#tables = tables
    this.#logs = logs
    this.left = blocksMax
  }

  /** Frees expired blocks, and stores the expiry of those that a longer retention keeps. */
  freeExpired(now: number): void {
    const heads = new Map<string, Head | undefined>()
    for (const block of this.#blocks('expires_at <= ?', now)) {
      const logId = block.log as string
      if (!heads.has(logId)) heads.set(logId, this.#logs.headOf(logId))
      const stored = { firstSeqNum: block.first_seq_num as number, expiresAt: block.expires_at as number }
      const expiresAt = blockExpiresAt(stored, heads.get(logId)?.extensions)
      if (isBlockExpired(expiresAt, now)) this.#free(block)
      else {
        this.#tables.run(
          'UPDATE headwater_blocks SET expires_at = ? WHERE log = ? AND end_seq_num = ? AND part = 0',
          expiresAt,
          logId,
          block.end_seq_num!,
        )
      }
    }
  }

  freeTrimmed(logId: string, head: Head, point: number): void {
    for (const block of this.#blocks('log = ? AND end_seq_num <= ?', logId, point)) this.#free(block)
    this.#logs.scheduleTrim(logId, head)
  }

  /** Removes the log, too, once it has no blocks left. */
  freeDeleted(logId: string): void {
    for (const block of this.#blocks('log = ?', logId)) this.#free(block)
    if (this.left > 0) this.#tables.run('DELETE FROM headwater_logs WHERE id = ?', logId)
  }

  /** Selects blocks within the limit, which they use up. */
  #blocks(where: string, ...values: SqliteValue[]): SqliteRow[] {
    const found = this.#tables.all(
      `SELECT log, end_seq_num, first_seq_num, metered_bytes, expires_at FROM headwater_blocks
       WHERE part = 0 AND ${where} LIMIT ?`,
      ...values,
      this.left,
    )
    this.left -= found.length
    return found
  }

  #free({ log, end_seq_num, metered_bytes }: SqliteRow): void {
    this.#tables.run('DELETE FROM headwater_blocks WHERE log = ? AND end_seq_num = ?', log!, end_seq_num!)
    this.#tables.run(
      'UPDATE headwater_logs SET metered_bytes = metered_bytes - ? WHERE id = ?',
      metered_bytes!,
      log!,
    )
    this.logIds.add(log as string)
  }
}
