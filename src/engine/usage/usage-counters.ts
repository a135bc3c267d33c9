import type { Operation } from '../../model/access.ts'

/** Totals since the engine was opened, of what this engine did. */
export interface UsageCounters {
  /** Control operations by name; those that were never done are absent. */
  readonly operations: Readonly<Partial<Record<Operation, number>>>
  readonly appends: number
  readonly appendedRecords: number
  /** Metered, as all bytes. */
  readonly appendedBytes: number
  readonly readBatches: number
  readonly readBytes: number
  readonly unaryReads: number
  /** How many read sessions were opened. */
  readonly streamingReads: number
}

export type MutableCounters = {
  -readonly [Name in keyof Omit<UsageCounters, 'operations'>]: UsageCounters[Name]
} & { readonly operations: Partial<Record<Operation, number>> }

export function newCounters(): MutableCounters {
  return {
    operations: {},
    appends: 0,
    appendedRecords: 0,
    appendedBytes: 0,
    readBatches: 0,
    readBytes: 0,
    unaryReads: 0,
    streamingReads: 0,
  }
}
