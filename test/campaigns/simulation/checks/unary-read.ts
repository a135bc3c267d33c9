import type { ReadQuery, SequencedRecord } from '../../../../src/index.ts'
import type { ClockWindow } from '../../harness/engine-clock.ts'
import type { StoredRecord } from '../../model/stored-log.ts'
import type { Moment } from '../../model/stream-history.ts'
import {
  deliveredFrom,
  isBounded,
  leftOut,
  startOf,
  visibilitiesIn,
  visibilityOf,
  waitOf,
} from './read-rules.ts'

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
