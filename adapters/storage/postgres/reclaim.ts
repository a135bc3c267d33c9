import { isReclaimable, reclaimTimes } from '../../../src/core/retention.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import { COMMIT_KEPT_MS, STATEMENT_TIME } from './catalog.ts'
import { bytesOf, type PostgresRow } from './connections.ts'
import type { Database } from './database.ts'
import { HEAD_COLUMNS, headOf, summaryOf } from './logs.ts'
import type { Tables } from './schema.ts'

/** The most logs of each kind, trimmed and expired, that one run visits. */
const LOGS_MAX = 100
/** Blocks that one statement frees: few, so that slow databases need less time than a statement may take. */
const STATEMENT_BLOCKS_MAX = 250

/**
 * Frees the beginnings of logs, and the ids of old commits: a block that expires before an older one waits
 * for it. Every statement may be repeated, and several processes may reclaim at the same time.
 */
export async function reclaimRows(
  database: Database,
  tables: Tables,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  const logIds: string[] = []
  let left = limits.blocksMax
  const logs = await dueLogs(database, tables, limits, LOGS_MAX)
  for (const log of logs) {
    if (left <= 0) break
    const freed = await freeBeginning(database, tables, limits, log, Math.min(left, STATEMENT_BLOCKS_MAX))
    left -= Math.max(freed, 1)
    if (freed > 0 && log.is_deleted !== true) logIds.push(lossyTextOf(bytesOf(log.id)))
  }
  await database.query(
    `DELETE FROM ${tables.commits} WHERE id IN (
       SELECT id FROM ${tables.commits} WHERE committed_at < ${STATEMENT_TIME} - $1::bigint
       ORDER BY committed_at LIMIT $2
     )`,
    [COMMIT_KEPT_MS, limits.blocksMax],
  )
  const isLimited = logs.length >= LOGS_MAX || limits.blocksMax - left >= STATEMENT_BLOCKS_MAX || left <= 0
  return { more: isLimited && (await dueLogs(database, tables, limits, 1)).length > 0, logIds }
}

/** The logs of which something has to be freed. Deleted ones are due at 0. */
function dueLogs(
  database: Database,
  { logs }: Tables,
  { now, trimmedBefore }: ReclaimLimits,
  limit: number,
): Promise<readonly PostgresRow[]> {
  const selected = `SELECT id, ${HEAD_COLUMNS}, is_deleted, trimmed_to, due_at, expires_at FROM ${logs}`
  return database.query(
    `(${selected} WHERE due_at <= $1 ORDER BY due_at LIMIT $3) UNION ALL
     (${selected} WHERE expires_at <= $2 AND (due_at IS NULL OR due_at > $1) ORDER BY expires_at LIMIT $3)`,
    [Math.max(trimmedBefore, 0), now, limit],
  )
}

/**
 * Frees at most so many blocks at the beginning of a log; with the last ones, a deleted log. Resolves to how
 * many.
 */
async function freeBeginning(
  database: Database,
  tables: Tables,
  limits: ReclaimLimits,
  log: PostgresRow,
  blocksMax: number,
): Promise<number> {
  const { logs, blocks } = tables
  const head = log.is_deleted === true ? undefined : headOf(log)
  const rows = await database.query(
    `SELECT first_seq_num, end_seq_num, first_timestamp, last_timestamp, metered_bytes, expires_at
     FROM ${blocks} WHERE log = $1 ORDER BY end_seq_num LIMIT $2`,
    [log.id, blocksMax + 1],
  )
  const first = rows.map(summaryOf)
  const isKept = (block: (typeof first)[number], index: number) =>
    index === blocksMax || (head !== undefined && !isReclaimable(reclaimTimes(block, head), limits))
  const keptIndex = first.findIndex(isKept)
  const kept = first[keptIndex]
  const freed = kept === undefined ? first : first.slice(0, keptIndex)
  const times = kept && head && reclaimTimes(kept, head)
  await database.query(freeing(tables), [
    log.id,
    log.epoch,
    freed.at(-1)?.endSeqNum ?? 0,
    log.trimmed_to,
    log.due_at,
    log.expires_at,
    times?.trimmedAt ?? null,
    times?.expiresAt ?? null,
    kept !== undefined,
  ])
  if (head === undefined && kept === undefined) {
    await database.query(`DELETE FROM ${logs} WHERE id = $1 AND is_deleted`, [log.id])
  }
  return freed.length
}

/**
 * Frees blocks unless the log was reconfigured since it was read: its retention may have been extended. If
 * others have trimmed it or freed blocks meanwhile, the log stays due, and the next run looks again.
 */
const freeing = ({ logs, blocks }: Tables) => `WITH log AS (
    SELECT id FROM ${logs} WHERE id = $1 AND epoch = $2 FOR NO KEY UPDATE
  ), freed AS (
    DELETE FROM ${blocks} AS b USING log WHERE b.log = log.id AND b.end_seq_num <= $3
    RETURNING b.metered_bytes
  ), sums AS (
    SELECT COALESCE(sum(metered_bytes), 0) AS bytes FROM freed
  )
  UPDATE ${logs} AS l SET
    metered_bytes = l.metered_bytes - sums.bytes,
    due_at = CASE WHEN ${IS_UNCHANGED} AND NOT l.is_deleted THEN $7::bigint ELSE l.due_at END,
    expires_at = CASE WHEN l.metered_bytes = sums.bytes THEN NULL
      WHEN ${IS_UNCHANGED} AND $9::boolean THEN $8::bigint ELSE l.expires_at END
  FROM log, sums WHERE l.id = log.id`

const IS_UNCHANGED = `(l.trimmed_to IS NOT DISTINCT FROM $4::bigint
  AND l.due_at IS NOT DISTINCT FROM $5::bigint AND l.expires_at IS NOT DISTINCT FROM $6::bigint)`
