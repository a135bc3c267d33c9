import { reclaimablePoint } from '../../../src/core/retention.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { COMMIT_KEPT_MS } from './catalog.ts'
import { bytesOf, numberOf, type PostgresRow } from './client.ts'
import type { Database } from './database.ts'
import { HEAD_COLUMNS, headOf } from './heads.ts'
import type { Tables } from './schema.ts'

/** Logs with blocks to free that are looked up at once. */
const LOGS_MAX = 100
/** Blocks that one statement frees: few, so that slow databases need less time than a statement may take. */
const STATEMENT_BLOCKS_MAX = 200

/** Blocks to free, as `b`. `$1` is the largest number of them, and `values` begin at `$2`. */
interface Selection {
  readonly where: string
  readonly values: readonly unknown[]
  readonly order: string
  /** Whether the extensions of the logs, as `l`, decide, which no other process may change meanwhile. */
  readonly isExtendable?: boolean | undefined
}

/** A time as good as never. */
const NEVER = '9223372036854775807'

/** The time until which the extensions keep a block: see `extendedExpiry`. Null if none applies. */
const KEPT_UNTIL = `(
  SELECT max(COALESCE(e."until", ${NEVER}))
  FROM json_to_recordset(l.extensions::json) AS e (below bigint, "after" bigint, "until" bigint)
  WHERE b.first_seq_num < e.below AND b.expires_at > e."after"
)`

/** Frees expired and trimmed blocks, those of deleted logs, and the ids of old commits. */
export async function reclaimRows(
  database: Database,
  tables: Tables,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  const run = new Reclaiming(database, tables, limits)
  await run.freeExpired()
  await run.extendDue()
  await run.freeDueLogs()
  await run.forgetCommits()
  return { more: await run.hasMore(), logIds: [...run.touched] }
}

/** Every statement may be repeated, and two processes may reclaim at the same time. */
class Reclaiming {
  readonly touched = new Set<string>()
  readonly #database: Database
  readonly #tables: Tables
  readonly #limits: ReclaimLimits
  #left: number

  constructor(database: Database, tables: Tables, limits: ReclaimLimits) {
    this.#database = database
    this.#tables = tables
    this.#limits = limits
    this.#left = limits.blocksMax
  }

  freeExpired(): Promise<unknown> {
    return this.#free({
      where: `b.expires_at <= $2 AND COALESCE(${KEPT_UNTIL}, 0) <= $2`,
      values: [this.#limits.now],
      order: 'ORDER BY b.expires_at',
      isExtendable: true,
    })
  }

  /** Stores the expiry of blocks that are extended, so that the next run does not find them again. */
  async extendDue(): Promise<void> {
    const { logs, blocks } = this.#tables
    while (this.#left > 0) {
      const most = Math.min(this.#left, STATEMENT_BLOCKS_MAX)
      const extended = await this.#database.query(
        `UPDATE ${blocks} AS b SET expires_at = NULLIF(due.kept_until, ${NEVER}) FROM (
           SELECT b.log, b.end_seq_num, ${KEPT_UNTIL} AS kept_until
           FROM ${blocks} AS b JOIN ${logs} AS l ON l.id = b.log
           WHERE b.expires_at <= $2 AND ${KEPT_UNTIL} > $2 LIMIT $1
         ) AS due WHERE b.log = due.log AND b.end_seq_num = due.end_seq_num RETURNING 1`,
        [most, this.#limits.now],
      )
      this.#left -= extended.length
      if (extended.length < most) return
    }
  }

  async freeDueLogs(): Promise<void> {
    let logs = await this.#dueLogs(LOGS_MAX)
    while (logs.length > 0 && this.#left > 0) {
      for (const log of logs) {
        if (log.is_deleted === true) await this.#freeDeleted(log)
        else await this.#freeTrimmed(log)
        if (this.#left <= 0) return
      }
      logs = await this.#dueLogs(LOGS_MAX)
    }
  }

  async forgetCommits(): Promise<void> {
    const { commits } = this.#tables
    await this.#database.query(
      `DELETE FROM ${commits} WHERE id IN (
         SELECT id FROM ${commits} WHERE committed_at < $1 ORDER BY committed_at LIMIT $2
       )`,
      [this.#limits.now - COMMIT_KEPT_MS, this.#limits.blocksMax],
    )
  }

  async hasMore(): Promise<boolean> {
    const expired = await this.#database.query(
      `SELECT 1 FROM ${this.#tables.blocks} WHERE expires_at <= $1 LIMIT 1`,
      [this.#limits.now],
    )
    return expired.length > 0 || (await this.#dueLogs(1)).length > 0
  }

  #dueLogs(limit: number): Promise<readonly PostgresRow[]> {
    return this.#database.query(
      `SELECT id, ${HEAD_COLUMNS}, is_deleted, due_at FROM ${this.#tables.logs}
       WHERE due_at <= $1 ORDER BY due_at LIMIT $2`,
      [Math.max(this.#limits.trimmedBefore, 0), limit],
    )
  }

  async #freeDeleted({ id }: PostgresRow): Promise<void> {
    const order = 'ORDER BY b.end_seq_num'
    if (await this.#free({ where: 'b.log = $2', values: [id], order })) return
    await this.#database.query(`DELETE FROM ${this.#tables.logs} WHERE id = $1 AND is_deleted`, [id])
  }

  async #freeTrimmed(log: PostgresRow): Promise<void> {
    // Also if nothing is left to free: an earlier statement may have freed it before its connection was lost.
    this.#touch(log.id)
    const { trims } = headOf(log)
    const { trimmedBefore } = this.#limits
    const point = reclaimablePoint(trims, trimmedBefore)
    const where = 'b.log = $2 AND b.end_seq_num <= $3'
    const order = 'ORDER BY b.end_seq_num'
    if (await this.#free({ where, values: [log.id, point], order })) return
    const next = trims.find(({ at }) => at > trimmedBefore)?.at ?? null
    // Unless an append has trimmed the log again.
    await this.#database.query(
      `UPDATE ${this.#tables.logs} SET due_at = $3 WHERE id = $1 AND append_id = $2 AND NOT is_deleted`,
      [log.id, log.append_id, next],
    )
  }

  /** Frees at most as many of the selected blocks as are left. Returns whether there may be more. */
  async #free(selection: Selection): Promise<boolean> {
    while (this.#left > 0) {
      const most = Math.min(this.#left, STATEMENT_BLOCKS_MAX)
      const count = await this.#freeSome(selection, most)
      // Another process may have freed what this one selected, and not the rest.
      if (count < most && !(await this.#exists(selection))) return false
    }
    return true
  }

  async #exists(selection: Selection): Promise<boolean> {
    const statement = `SELECT 1 FROM ${this.#source(selection)} WHERE ${selection.where} LIMIT $1`
    return (await this.#database.query(statement, [1, ...selection.values])).length > 0
  }

  #source({ isExtendable }: Selection): string {
    const { logs, blocks } = this.#tables
    return isExtendable ? `${blocks} AS b JOIN ${logs} AS l ON l.id = b.log` : `${blocks} AS b`
  }

  /** Returns how many blocks were freed. */
  async #freeSome(selection: Selection, most: number): Promise<number> {
    const { logs, blocks } = this.#tables
    const { where, values, order, isExtendable } = selection
    const statement = `WITH due AS (
         SELECT b.log, b.end_seq_num FROM ${this.#source(selection)}
         WHERE ${where} ${order} LIMIT $1 ${isExtendable ? 'FOR NO KEY UPDATE OF l' : ''}
       ), freed AS (
         DELETE FROM ${blocks} WHERE (log, end_seq_num) IN (SELECT log, end_seq_num FROM due)
         RETURNING log, metered_bytes
       ), sums AS (
         SELECT log, sum(metered_bytes) AS bytes, count(*) AS blocks FROM freed GROUP BY log
       ), counted AS (
         UPDATE ${logs} AS l SET metered_bytes = l.metered_bytes - sums.bytes
         FROM sums WHERE l.id = sums.log RETURNING l.id, l.is_deleted
       )
       SELECT sums.log, sums.blocks, counted.is_deleted FROM sums LEFT JOIN counted ON counted.id = sums.log`
    const rows = await this.#database.query(statement, [most, ...values])
    let count = 0
    for (const row of rows) {
      count += numberOf(row.blocks)
      if (row.is_deleted === false) this.#touch(row.log)
    }
    this.#left -= count
    return count
  }

  #touch(id: unknown): void {
    this.touched.add(lossyTextOf(bytesOf(id)))
  }
}
