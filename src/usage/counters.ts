import type { Operation } from '../model/access.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const RECORDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const BYTES = [128, 512, 2048, 8192, 32_768, 131_072, 524_288, 1_048_576]

/** The counters of an engine, as `UsageCounters` that can be changed. */
export function newCounters() {
  return {
    operations: {} as Partial<Record<Operation, number>>,
    appends: 0,
    appendedRecords: 0,
    appendedBytes: 0,
    readBatches: 0,
    readBytes: 0,
    unaryReads: 0,
    streamingReads: 0,
    appendQueueSeconds: newHistogram(SECONDS),
    appendAckSeconds: newHistogram(SECONDS),
    appendBatchRecords: newHistogram(RECORDS),
    appendBatchBytes: newHistogram(BYTES),
  }
}

function newHistogram(bounds: readonly number[]) {
  return { bounds, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 }
}

export function observe(histogram: ReturnType<typeof newHistogram>, value: number): void {
  const { bounds, counts } = histogram
  const found = bounds.findIndex((bound) => value <= bound)
  counts[found === -1 ? bounds.length : found]!++
  histogram.sum += value
}
