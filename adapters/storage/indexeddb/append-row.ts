import type { Head } from '../../../src/storage/contract.ts'
import type { LogRow } from './log-row.ts'
import { endSeqNumOf, type Page } from './page.ts'
import type { AppendKey } from './schema.ts'

/**
 * Small appends of one group, behind the row of their log instead of in it, so that they are one `add`. Everything of the head that it does not say is
 * as in the row. Persisted: keep stable.
 *
 * Its key is where it begins, so that of two which rest on the same head one alone can be added. Whoever knows of a row that has been replaced since does not
 * find its opening; what he added is behind no row then, and nobody reads it.
 */
export interface AppendRow extends Page {
  /** Of the log's row. */
  readonly revision: number
  readonly appendId: string
  readonly appendedAt: number
  /** That of the tail. */
  readonly timestamp: number
}

/** Is there as long as the log's row has this revision: with it alone, an append behind the row counts. */
export interface Opening {
  readonly revision: number
}

export function openingKey(logId: string, revision: number): AppendKey {
  return [logId, -1, revision]
}

/** Of everything behind the row of a log, also of rows that it had before. */
export function behindRow(logId: string): IDBKeyRange {
  return IDBKeyRange.bound([logId], [logId, []])
}

export function isAppend(behind: AppendRow | Opening): behind is AppendRow {
  return 'appendId' in behind
}

/** Of what is behind the row of a log, or was behind an earlier one. */
export function appendsTo({ revision }: LogRow, behind: readonly (AppendRow | Opening)[]): AppendRow[] {
  return behind.filter(isAppend).filter((append) => append.revision === revision)
}

export function headAfter(head: Head, { numbers, appendId, appendedAt, timestamp }: AppendRow): Head {
  return { ...head, tail: { seqNum: endSeqNumOf({ numbers }), timestamp }, appendId, appendedAt }
}
