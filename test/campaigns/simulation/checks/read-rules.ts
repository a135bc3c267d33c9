import type { ReadQuery, SequencedRecord, StreamPosition } from '../../../../src/index.ts'
import { millisecondsOf } from '../../../../src/model/validation.ts'
import type { ClockWindow } from '../../harness/engine-clock.ts'
import type { Moment, StoredRecord } from '../../model/stream-history.ts'

export type ReadKind = 'unary' | 'session'

/** Whether a read must, may or never deliver a record in its range. */
type Visibility = 'must' | 'may' | 'never'

/** A unary read has at most 1,000 records and 1 MiB. No record is larger than 200 kB. */
const UNARY_COUNT_MAX = 1_000
const UNARY_BYTES_MIN = 800_000

/** Returns the first position of a read opened at this moment, or undefined if it is beyond the tail. */
export function startOf(
  query: ReadQuery,
  { log, state, tailTimestamp, trimPoint }: Moment,
): number | undefined {
  const { seqNum, timestamp, tailOffset = 0, clamp } = query
  if (seqNum !== undefined) {
    if (seqNum <= state.tail) return seqNum
    return clamp ? state.tail : undefined
  }
  if (timestamp !== undefined) {
    const from = millisecondsOf(timestamp)
    if (from > tailTimestamp) return clamp ? state.tail : undefined
    // A fork does not have the timestamps of what was trimmed from its source.
    const first = log?.records.find((record) => record.seqNum >= trimPoint && record.timestamp >= from)
    return Math.min(first?.seqNum ?? state.tail, state.tail)
  }
  return Math.max(0, state.tail - tailOffset)
}

/** Returns how long a read waits at the tail, in milliseconds. */
export function waitOf({ waitMs, count }: ReadQuery, kind: ReadKind): number {
  if (kind === 'unary') return Math.min(waitMs ?? 0, 60_000)
  return waitMs ?? (count === undefined ? Number.POSITIVE_INFINITY : 0)
}

/** Trimmed and expired records are invisible to reads opened later. */
export function visibilityOf(
  { seqNum, expiresAt, extendedTo, isFreed }: StoredRecord,
  { trimPoint, state }: Moment,
  clock: ClockWindow,
): Visibility {
  if (seqNum < trimPoint) return 'never'
  // A later append of an engine with a slow clock may have been delivered live.
  if (extendedTo !== null && extendedTo <= clock.min && seqNum < state.tail) return 'never'
  // The read may have seen the stream before the retention was lengthened.
  return isFreed || (expiresAt !== null && expiresAt <= clock.max) ? 'may' : 'must'
}

/** Whether there is a record from the start on that the read must, or may, deliver at once. */
export function visibilitiesIn(
  query: ReadQuery,
  moment: Moment,
  clock: ClockWindow,
): ReadonlySet<Visibility> {
  const { log, state } = moment
  const stored = log!.records.slice(startOf(query, moment) ?? state.tail, state.tail)
  return new Set(stored.map((record) => visibilityOf(record, moment, clock)))
}

/** Returns why a read at this moment cannot have been rejected with 416 and this tail, as a clause. */
export function rejectionContradiction(
  query: ReadQuery,
  kind: ReadKind,
  tail: StreamPosition,
  moment: Moment,
  clock: ClockWindow,
): string | undefined {
  if (moment.log === undefined) return 'there is no stream'
  if (tail.seqNum !== moment.state.tail) return `the tail is ${moment.state.tail}`
  if (startOf(query, moment) === undefined) return undefined
  if (waitOf(query, kind) > 0) return 'it had to wait'
  return visibilitiesIn(query, moment, clock).has('must') ? 'there is something to read' : undefined
}

/** How far a read has come. */
export interface Progress {
  /** The position of the next record. */
  readonly next: number
  /** The number of records delivered. */
  readonly count: number
}

/** Whether a bound of the read ends it there. `bytes` have been delivered at once. */
export function isBounded({ count: most }: ReadQuery, kind: ReadKind, count: number, bytes = 0): boolean {
  if (count >= (most ?? Number.POSITIVE_INFINITY)) return true
  return kind === 'unary' && (count >= UNARY_COUNT_MAX || bytes > UNARY_BYTES_MIN)
}

/**
 * Compares delivered records with those of a stream: in order, none twice, none omitted that had to be
 * delivered. Returns a clause that describes the difference, or the position reached.
 */
export function deliveredFrom(
  records: readonly StoredRecord[],
  { next: from, count }: Progress,
  delivered: readonly SequencedRecord[],
  visibility: (record: StoredRecord) => Visibility,
  countMax = Number.POSITIVE_INFINITY,
): Progress | string {
  let next = from
  for (const record of delivered) {
    for (; records[next]?.seqNum !== record.seqNum; next++) {
      const stored = records[next]
      if (stored === undefined) return `record ${record.seqNum} was delivered, which is not stored yet`
      if (visibility(stored) === 'must') return `record ${record.seqNum} was delivered instead of ${next}`
    }
    const stored = records[next]!
    if (visibility(stored) === 'never') return `record ${next} is trimmed or expired`
    if (stored.timestamp !== record.timestamp || Buffer.compare(stored.body, record.body) !== 0)
      return `record ${next} is another one`
    next++
  }
  const all = count + delivered.length
  return all > countMax ? `it has ${all} records` : { next, count: all }
}

/** Returns a clause if a record that must be delivered is between these positions. */
export function leftOut(
  records: readonly StoredRecord[],
  from: number,
  end: number,
  visibility: (record: StoredRecord) => Visibility,
): string | undefined {
  const omitted = records.slice(from, end).find((record) => visibility(record) === 'must')
  return omitted && `record ${omitted.seqNum} was left out`
}

/** Returns why a read of one batch opened at this moment cannot have returned these records, as a clause. */
export function unaryContradiction(
  query: ReadQuery,
  delivered: readonly SequencedRecord[],
  moment: Moment,
  clock: ClockWindow,
): string | undefined {
  const { log, state } = moment
  if (log === undefined) return 'there is no stream'
  const from = startOf(query, moment)
  if (from === undefined) return 'it starts beyond the tail'
  const visibility = (record: StoredRecord) => visibilityOf(record, moment, clock)
  const reached = deliveredFrom(log.records, { next: from, count: 0 }, delivered, visibility, query.count)
  if (typeof reached === 'string') return reached
  const bytes = delivered.reduce((sum, { body }) => sum + body.length, 0)
  if (isBounded(query, 'unary', delivered.length, bytes)) return undefined
  const waitMs = waitOf(query, 'unary')
  const there = visibilitiesIn(query, moment, clock)
  // What is stored comes at once. Only a read that has nothing to return waits for the next append.
  if (delivered.length > 0 && delivered[0]!.seqNum >= state.tail && waitMs > 0)
    return there.has('must') ? 'there is something to read' : undefined
  const omitted = leftOut(log.records, reached.next, state.tail, visibility)
  if (omitted !== undefined || delivered.length > 0) return omitted
  if (waitMs === 0) return there.has('may') ? undefined : 'there is nothing to read'
  // The clock may have been set back meanwhile.
  const waitedMs = Math.max(clock.elapsedMs, clock.max - clock.min)
  return state.isClosed || waitedMs >= waitMs ? undefined : 'it did not wait'
}
