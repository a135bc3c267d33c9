import type { HistogramCounts, UsageCounters } from '../engine/service/usage.ts'
import type { Operation } from '../model/access.ts'

type HistogramName = 'appendQueueSeconds' | 'appendAckSeconds' | 'appendBatchRecords' | 'appendBatchBytes'

/** The counters of an engine while it counts. */
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
    appendQueueSeconds: new Histogram(SECONDS),
    appendAckSeconds: new Histogram(SECONDS),
    appendBatchRecords: new Histogram(RECORDS),
    appendBatchBytes: new Histogram(BYTES),
  }
}

export function snapshotCounters(counters: MutableCounters): UsageCounters {
  return {
    ...counters,
    operations: { ...counters.operations },
    appendQueueSeconds: counters.appendQueueSeconds.counts,
    appendAckSeconds: counters.appendAckSeconds.counts,
    appendBatchRecords: counters.appendBatchRecords.counts,
    appendBatchBytes: counters.appendBatchBytes.counts,
  }
}

class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  get counts(): HistogramCounts {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum }
  }
}
