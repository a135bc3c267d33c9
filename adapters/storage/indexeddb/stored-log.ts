import type { Head } from '../../../src/storage/contract.ts'
import { type AppendRow, appendsTo, behindRow, headAfter, isAppend } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import { meteredBytesIn, pageOf, sizeOfPage } from './page.ts'
import { blocksIn } from './page-row.ts'
import type { ReadTransaction, WriteTransaction } from './schema.ts'
import type { LogState } from './small-append.ts'

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

export function headOf({ row, appends }: StoredLog): Head {
  const last = appends.at(-1)
  return last === undefined ? row.head : headAfter(row.head, last)
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

/** What it is without its blocks. */
export function stateOf(log: StoredLog): LogState {
  const { row, appends } = log
  const bytes = [row.tail, ...appends].reduce((sum, page) => sum + sizeOfPage(page), 0)
  return { row, head: headOf(log), rowsBehind: appends.length, bytes }
}
