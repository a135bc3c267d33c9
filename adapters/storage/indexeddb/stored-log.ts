import type { Head } from '../../../src/storage/contract.ts'
import { type AppendRow, behindRow, type Opening } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import { endSeqNumOf, meteredBytesIn, pageOf } from './page.ts'
import { blocksIn } from './page-row.ts'
import type { ReadTransaction, WriteTransaction } from './schema.ts'

/** A log as it is stored, but for its pages. */
export interface StoredLog {
  readonly row: LogRow
  /** Behind the row, in order. */
  readonly appends: readonly AppendRow[]
  /** Whether something can be added behind it. */
  readonly isOpen: boolean
}

/** Of a row that was just written. */
export function logOf(row: LogRow): StoredLog {
  return { row, appends: [], isOpen: true }
}

export async function readLog(
  transaction: ReadTransaction | WriteTransaction,
  logId: string,
): Promise<StoredLog | undefined> {
  const [row, behind] = await Promise.all([
    transaction.objectStore('logs').get(logId),
    transaction.objectStore('appends').getAll(behindRow(logId)),
  ])
  if (row === undefined) return undefined
  const appends = appendsTo(row, behind)
  return { row, appends, isOpen: behind.some((one) => !isAppend(one) && one.revision === row.revision) }
}

/** Of what is behind the row of a log, or was behind an earlier one. */
export function appendsTo({ revision }: LogRow, behind: readonly (AppendRow | Opening)[]): AppendRow[] {
  return behind.filter(isAppend).filter((append) => append.revision === revision)
}

export function isAppend(behind: AppendRow | Opening): behind is AppendRow {
  return 'appendId' in behind
}

export function headOf({ row, appends }: StoredLog): Head {
  const last = appends.at(-1)
  return last === undefined ? row.head : headAfter(row.head, last)
}

export function headAfter(head: Head, { numbers, appendId, appendedAt, timestamp }: AppendRow): Head {
  return { ...head, tail: { seqNum: endSeqNumOf({ numbers }), timestamp }, appendId, appendedAt }
}

/** The row with what is behind it. Throws `StorageFailure` of kind `corrupt` when something is damaged. */
export function foldedRow(logId: string, log: StoredLog): LogRow {
  const { row, appends } = log
  if (appends.length === 0) return row
  const blocks = [row.tail, ...appends].flatMap((page) => blocksIn(logId, page))
  return { ...row, head: headOf(log), meteredBytes: meteredBytesOfLog(log), tail: pageOf(blocks) }
}

export function meteredBytesOfLog({ row, appends }: StoredLog): number {
  return appends.reduce((sum, append) => sum + meteredBytesIn(append), row.meteredBytes)
}
