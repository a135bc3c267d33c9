import type { ReadQuery, SequencedRecord } from '../../../../src/index.ts'
import { millisecondsOf } from '../../../../src/model/validation.ts'
import type { StoredRecord } from '../stored-log.ts'

/** Whether a read must, may or never deliver a record in its range. */
export type Visibility = 'must' | 'may' | 'never'

/** The remaining bounds of a read. */
export interface RemainingBounds {
  readonly count: number
  readonly bytes: number
  /** Exclusive timestamp. */
  readonly until: number
}

/** A unary read has at most 1,000 records and 1 MiB (docs/protocol.md "Bounds"). */
export function boundsOf(query: ReadQuery, kind: 'unary' | 'session'): RemainingBounds {
  const { count, bytes, until } = query
  if (kind === 'session')
    return {
      count: count ?? INFINITE,
      bytes: bytes ?? INFINITE,
      until: until === undefined ? INFINITE : millisecondsOf(until),
    }
  return {
    count: Math.min(count ?? INFINITE, 1000),
    bytes: Math.min(bytes ?? INFINITE, 1_048_576),
    until: until === undefined ? INFINITE : millisecondsOf(until),
  }
}

const INFINITE = Number.POSITIVE_INFINITY

export function areExhausted({ count, bytes }: RemainingBounds): boolean {
  return count <= 0 || bytes <= 0
}

export function admit(
  { count, bytes, until }: RemainingBounds,
  { meteredBytes, timestamp }: StoredRecord,
): boolean {
  return count >= 1 && bytes >= meteredBytes && timestamp < until
}

export interface Comparison {
  /** The position of the next record. */
  readonly next: number
  /** The remaining bounds. */
  readonly bounds: RemainingBounds
  /** Whether a bound excludes the next record. */
  readonly isBounded: boolean
}

/**
 * Compares the delivered records with the records of a stream: in order, none twice, and none omitted that
 * had to be delivered before `end`. Returns a clause that describes the difference, or the position reached.
 */
export function compareRecords(
  records: readonly StoredRecord[],
  from: number,
  end: number,
  delivered: readonly SequencedRecord[],
  visibilityOf: (record: StoredRecord) => Visibility,
  before: RemainingBounds,
): Comparison | string {
  let bounds = before
  let next = from
  for (const record of delivered) {
    for (;;) {
      const stored = records[next]
      if (stored === undefined)
        return `record ${record.seqNum} was delivered instead of ${next}, which is not stored yet`
      if (stored.seqNum === record.seqNum) break
      if (visibilityOf(stored) === 'must') return `record ${record.seqNum} was delivered instead of ${next}`
      next++
    }
    const stored = records[next]!
    if (visibilityOf(stored) === 'never') return `record ${next} is trimmed or expired`
    if (stored.timestamp !== record.timestamp || Buffer.compare(stored.body, record.body) !== 0) {
      return `record ${next} is another one`
    }
    if (!admit(bounds, stored)) return `record ${next} is beyond a bound of the read`
    bounds = { ...bounds, count: bounds.count - 1, bytes: bounds.bytes - stored.meteredBytes }
    next++
  }
  for (let index = next; index < end; index++) {
    const stored = records[index]!
    const visibility = visibilityOf(stored)
    // Also before a record that may be omitted, because it may be visible.
    const ends = areExhausted(bounds) || (visibility !== 'never' && !admit(bounds, stored))
    if (ends) return { next, bounds, isBounded: true }
    if (visibility === 'must') return `record ${index} was left out`
  }
  return { next, bounds, isBounded: areExhausted(bounds) }
}
