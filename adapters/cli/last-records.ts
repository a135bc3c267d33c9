import type { ReadQuery, SequencedRecord, Stream } from '../../src/index.ts'

/** Records that are read at a time, going back from the tail. */
const STEP_MIN = 100
const STEP_MAX = 10_000

/**
 * Returns where to start so that a read to the tail has `count` records that are counted. Goes back from the
 * tail in steps, and keeps the positions of one step at a time.
 */
export async function lastRecords(
  stream: Stream,
  count: number,
  counts: (record: SequencedRecord) => boolean,
  signal: AbortSignal,
): Promise<ReadQuery> {
  if (count === 0) return { tailOffset: 0 }
  let left = count
  let end = Number.POSITIVE_INFINITY
  for (let step = Math.min(Math.max(count, STEP_MIN), STEP_MAX); ; step = Math.min(4 * step, STEP_MAX)) {
    const isFirst = end === Number.POSITIVE_INFINITY
    const start = Math.max(0, end - step)
    const query = isFirst ? { tailOffset: step } : { seqNum: start, count: end - start, clamp: true }
    const positions: number[] = []
    let first: number | undefined
    for await (const { records } of stream.read(query, { as: 'bytes', signal }).batches()) {
      first ??= records[0]?.seqNum
      for (const record of records) if (record.seqNum < end && counts(record)) positions.push(record.seqNum)
    }
    if (positions.length >= left) return { seqNum: positions.at(-left)!, clamp: true }
    left -= positions.length
    // The records before were trimmed, or there are none.
    if (first === undefined || first === 0 || (!isFirst && first > start)) return { seqNum: 0, clamp: true }
    end = first
  }
}
