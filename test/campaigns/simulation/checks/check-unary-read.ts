import type { ReadQuery, SequencedRecord, StreamPosition } from '../../../../src/index.ts'
import type { ClockWindow } from '../engine-clock.ts'
import type { StoredRecord } from '../stored-log.ts'
import type { Moment } from '../stream-history.ts'
import { admit, areExhausted, boundsOf, compareRecords, type Visibility } from './compare-records.ts'
import { startOf, waitOf } from './read-start.ts'

export type UnaryOutcome =
  | { readonly kind: 'records'; readonly records: readonly SequencedRecord[] }
  /** A 416 with the reported tail. */
  | { readonly kind: 'unsatisfiable'; readonly tail: StreamPosition }

/** Returns why a read of one batch that was opened at this moment cannot have this outcome, as a clause. */
export function unaryContradiction(
  query: ReadQuery,
  outcome: UnaryOutcome,
  moment: Moment,
  clock: ClockWindow,
): string | undefined {
  const { log, state, rules } = moment
  if (log === undefined) return 'there is no stream'
  const visibilityOf = visibilityIn(moment, clock)
  const start = startOf(query, moment)
  const from = start === 'tail' || start === 'beyond the tail' ? state.tail : start.seqNum
  const stored = log.records.slice(from, state.tail).map(visibilityOf)
  const waitMs = waitOf(query, 'unary')
  if (outcome.kind === 'unsatisfiable') {
    if (outcome.tail.seqNum !== state.tail) return `the tail is ${state.tail}`
    if (start === 'beyond the tail') return undefined
    if (waitMs > 0) return 'it had to wait'
    return stored.includes('must') ? 'there is something to read' : undefined
  }
  if (start === 'beyond the tail') return 'it starts beyond the tail'
  const { records } = outcome
  const bounds = boundsOf(query, 'unary')
  const canBeEmpty = !stored.includes('must')
  const now = compareRecords(
    log.records.slice(0, state.tail),
    from,
    state.tail,
    records,
    visibilityOf,
    bounds,
  )
  if (waitMs === 0) {
    if (canBeEmpty && !stored.includes('may')) return 'there is nothing to read'
    return typeof now === 'string' ? now : undefined
  }
  const isOfNow = typeof now !== 'string' && (records.length > 0 || now.isBounded)
  if (isOfNow) return undefined
  if (!canBeEmpty) return typeof now === 'string' ? now : 'there is something to read'
  // It waited: the result is one of the next appends, or nothing was appended for the whole wait.
  const later = compareRecords(log.records, from, 0, records, visibilityOf, bounds)
  if (typeof later === 'string') return later
  const next = log.records[state.tail]
  const isBounded = areExhausted(bounds) || (next !== undefined && !admit(bounds, next))
  // The clock may have been set back meanwhile.
  const waitedMs = Math.max(clock.elapsedMs, clock.max - clock.min)
  const hasWaited = records.length > 0 || isBounded || rules.isClosed || waitedMs >= waitMs
  return hasWaited ? undefined : 'it did not wait'
}

/** Trimmed and expired records are invisible to reads opened later. */
export function visibilityIn(
  { trimPoint, state }: Moment,
  clock: ClockWindow,
): (record: StoredRecord) => Visibility {
  return ({ seqNum, expiresAt, extendedTo, isFreed }) => {
    if (seqNum < trimPoint) return 'never'
    // A later append of an engine with a slow clock may have been delivered live.
    if (extendedTo !== null && extendedTo <= clock.min && seqNum < state.tail) return 'never'
    // The read may have seen the stream before the retention was lengthened.
    return isFreed || (expiresAt !== null && expiresAt <= clock.max) ? 'may' : 'must'
  }
}
