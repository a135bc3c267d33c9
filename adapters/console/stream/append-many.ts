import type { Stream } from '../../../src/api/stream.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { batchesOf, type TextInput } from './append-input.ts'

/** Appends batches in order; the condition of a sequence number continues from one to the next. */
export async function appendInTurn(
  stream: Stream,
  batches: readonly TextInput[][],
  { matchSeqNum, fencingToken }: AppendConditions,
  onProgress: (first: number, end: number) => void,
): Promise<void> {
  let first: number | undefined
  let match = matchSeqNum
  for (const records of batches) {
    const { start, end } = await stream.append(records, { matchSeqNum: match, fencingToken })
    first ??= start.seqNum
    if (match !== undefined) match = end.seqNum
    onProgress(first, end.seqNum)
  }
}

/** How often records are appended, at the most. */
const TICK_MS = 100

/**
 * Appends records one after the other at a rate per second, those of a tenth of a second together, until the
 * signal aborts. Stops at the first failure.
 */
export async function appendMany(
  stream: Stream,
  count: number,
  rate: number,
  recordOf: (n: number) => TextInput,
  conditions: AppendConditions,
  onProgress: (first: number, end: number) => void,
  signal: AbortSignal,
): Promise<void> {
  if (rate === 0) throw new Error('the rate must be 1 or more')
  const started = performance.now()
  let first: number | undefined
  let match = conditions.matchSeqNum
  let appended = 0
  while (appended < count && !signal.aborted) {
    const due = Math.min(count, 1 + Math.floor(((performance.now() - started) * rate) / 1000))
    const records = Array.from({ length: Math.min(due - appended, 1000) }, (_, index) =>
      recordOf(appended + index + 1),
    )
    if (records.length > 0) {
      await appendInTurn(stream, batchesOf(records), { ...conditions, matchSeqNum: match }, (start, end) => {
        first ??= start
        if (match !== undefined) match = end
        onProgress(first, end)
      })
      appended += records.length
    }
    if (appended === due) await new Promise((resolve) => setTimeout(resolve, Math.max(TICK_MS, 1000 / rate)))
  }
}
