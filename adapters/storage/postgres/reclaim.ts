import { reclaimablePoint } from '../../../src/core/retention.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { COMMIT_KEPT_MS } from './catalog.ts'
import { bytesOf, numberOf, type PostgresRow } from './connections.ts'
import type { Database } from './database.ts'
import { HEAD_COLUMNS, headOf } from './logs.ts'
import type { Tables } from './schema.ts'

/** The most logs with blocks to free that one run visits. */
const LOGS_MAX = 100
/** Blocks that one statement frees: few, so that slow databases need less time than a statement may take. */
const STATEMENT_BLOCKS_MAX = 200

/** A time as good as never. */
const NEVER = '9223372036854775807'

/** The time until which the extensions keep a block: see `blockExpiresAt`. Null if none applies. */
const KEPT_UNTIL = `(
  SELECT max(COALESCE(e."until", ${NEVER}))
  FROM json_to_recordset(l.extensions::json) AS e (below bigint, "after" bigint, "until" bigint)
  WHERE b.first_seq_num < e.below AND b.expires_at > e."after"
)`

/** Blocks to free, as `b`, and their logs, as `l`. The values are `$2` and later. */
interface Selection {
  readonly where: string
  readonly values: readonly unknown[]
  /** The column that an index sorts them by. */
  readonly order: string
  /** The time until which a block is kept nevertheless; null if it is not. Never by default. */
  readonly keptUntil?: string
}

/** Frees expired and trimmed blocks, those of deleted logs, and the ids of old commits. */
export async function reclaimRows(
  database: Database,
  tables: Tables,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  const run = new Reclaiming(database, tables, limits)
  await run.freeExpired()
  const isDone = await run.freeDueLogs()
  await run.forgetCommits()
  return { more: !isDone && (await run.hasMore()), logIds: [...run.touched] }
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
    const { now } = this.#limits
    return this.#free({
      where: 'b.expires_at <= $2',
      values: [now],
      order: 'b.expires_at',
      keptUntil: `NULLIF(GREATEST(${KEPT_UNTIL}, $2), $2)`,
    })
  }

  /** Resolves to whether it has visited all. One that was trimmed meanwhile stays due for a later run. */
  async freeDueLogs(): Promise<boolean> {
    const logs = await this.#dueLogs(LOGS_MAX)
    for (const log of logs) {
      if (this.#left <= 0) return false
      if (log.is_deleted === true) await this.#freeDeleted(log)
      else await this.#freeTrimmed(log)
    }
    return this.#left > 0 && logs.length < LOGS_MAX
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
      `SELECT id, ${HEAD_COLUMNS}, is_deleted FROM ${this.#tables.logs}
       WHERE due_at <= $1 ORDER BY due_at LIMIT $2`,
      [Math.max(this.#limits.trimmedBefore, 0), limit],
    )
  }

  async #freeDeleted({ id }: PostgresRow): Promise<void> {
    if (await this.#free({ where: 'b.log = $2', values: [id], order: 'b.end_seq_num' })) return
    await this.#database.query(`DELETE FROM ${this.#tables.logs} WHERE id = $1 AND is_deleted`, [id])
  }

  async #freeTrimmed(log: PostgresRow): Promise<void> {
    // Also if nothing is left to free: an earlier statement may have freed it before its connection was lost.
    this.#touch(log.id)
    const { trims } = headOf(log)
    const { trimmedBefore } = this.#limits
    const point = reclaimablePoint(trims, trimmedBefore)
    const where = 'b.log = $2 AND b.end_seq_num <= $3'
    if (await this.#free({ where, values: [log.id, point], order: 'b.end_seq_num' })) return
    const next = trims.find(({ at }) => at > trimmedBefore)?.at ?? null
    await this.#database.query(
      `UPDATE ${this.#tables.logs} SET due_at = $3
       WHERE id = $1 AND trimmed_to IS NOT DISTINCT FROM $2 AND NOT is_deleted`,
      [log.id, trims.at(-1)?.point ?? null, next],
    )
  }

  /** Frees at most as many of the selected blocks as are left. Returns whether there may be more. */
  async #free(selection: Selection): Promise<boolean> {
    while (this.#left > 0) {
      const most = Math.min(this.#left, STATEMENT_BLOCKS_MAX)
      const selected = await this.#freeSome(selection, most)
      this.#left -= selected
      if (selected < most) return false
    }
    return true
  }

  /**
   * Frees blocks, or stores the time until which they are kept, so that the next run does not find them
   * again. Returns how many were selected. The lock keeps the extensions of the logs as they are meanwhile.
   */
  async #freeSome(
    { where, values, order, keptUntil = 'NULL::bigint' }: Selection,
    most: number,
  ): Promise<number> {
    const { logs, blocks } = this.#tables
    const rows = await this.#database.query(
      `WITH due AS (
         SELECT b.log, b.end_seq_num, l.is_deleted, ${keptUntil} AS kept_until
         FROM ${blocks} AS b JOIN ${logs} AS l ON l.id = b.log
         WHERE ${where} ORDER BY ${order} LIMIT $1 FOR NO KEY UPDATE OF l
       ), kept AS (
         UPDATE ${blocks} AS b SET expires_at = NULLIF(due.kept_until, ${NEVER}) FROM due
         WHERE b.log = due.log AND b.end_seq_num = due.end_seq_num AND due.kept_until IS NOT NULL
       ), freed AS (
         DELETE FROM ${blocks} AS b USING due
         WHERE b.log = due.log AND b.end_seq_num = due.end_seq_num AND due.kept_until IS NULL
         RETURNING b.log, b.metered_bytes
       ), counted AS (
         UPDATE ${logs} AS l SET metered_bytes = l.metered_bytes - sums.bytes
         FROM (SELECT log, sum(metered_bytes) AS bytes FROM freed GROUP BY log) AS sums
         WHERE l.id = sums.log
       )
       SELECT log, count(*) AS blocks, bool_or(kept_until IS NULL AND NOT is_deleted) AS is_touched
       FROM due GROUP BY log`,
      [most, ...values],
    )
    for (const { log, is_touched } of rows) if (is_touched === true) this.#touch(log)
    return rows.reduce((sum, { blocks }) => sum + numberOf(blocks), 0)
  }

  #touch(id: unknown): void {
    this.touched.add(lossyTextOf(bytesOf(id)))
  }
}
