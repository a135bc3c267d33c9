import type { Operation } from '../../model/operations.ts'
import { Histogram, type HistogramCounts } from './histogram.ts'

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
  /** Seconds that appends waited for room among those in flight. */
  readonly appendPermitSeconds: HistogramCounts
  /** Seconds from then until they were durable. */
  readonly appendAckSeconds: HistogramCounts
  readonly appendBatchRecords: HistogramCounts
  /** Metered. */
  readonly appendBatchBytes: HistogramCounts
}

type HistogramName = 'appendPermitSeconds' | 'appendAckSeconds' | 'appendBatchRecords' | 'appendBatchBytes'

export type MutableCounters = {
  -readonly [Name in keyof Omit<UsageCounters, 'operations' | HistogramName>]: UsageCounters[Name]
} & { readonly operations: Partial<Record<Operation, number>> } & Readonly<Record<HistogramName, Histogram>>

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const RECORDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const BYTES = [128, 512, 2048, 8192, 32_768, 131_072, 524_288, 1_048_576]

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
    appendPermitSeconds: new Histogram(SECONDS),
    appendAckSeconds: new Histogram(SECONDS),
    appendBatchRecords: new Histogram(RECORDS),
    appendBatchBytes: new Histogram(BYTES),
  }
}

export function countersNow(counters: MutableCounters): UsageCounters {
  return {
    ...counters,
    operations: { ...counters.operations },
    appendPermitSeconds: counters.appendPermitSeconds.counts,
    appendAckSeconds: counters.appendAckSeconds.counts,
    appendBatchRecords: counters.appendBatchRecords.counts,
    appendBatchBytes: counters.appendBatchBytes.counts,
  }
}
