import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX, UNARY_WAIT_MS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { millisecondsOf } from '../model/validation.ts'
import { reclaimablePoint, type Trim } from './retention.ts'
import type { StreamState } from './sequence.ts'

/** A unary read returns one batch and is always bounded; a session delivers batches as they arrive. */
export type ReadKind = 'unary' | 'session'

export interface ReadPlan {
  /** The first record: by sequence number, or the first with this timestamp or a later one. */
  readonly start: { readonly seqNum: number } | { readonly timestamp: number }
  /** The read never returns records below it: the trim point when it was opened, or an earlier one. */
  readonly floor: number
  readonly limits: ReadLimits
  /** Milliseconds to wait at the tail; Infinity waits forever. */
  readonly waitMs: number
  /** Whether the read ends at the tail as it moves, instead of the tail as it was at the start. */
  readonly chasesTail: boolean
}

export type ReadOutcome =
  | { readonly kind: 'read'; readonly plan: ReadPlan }
  /** Rejected with `range_not_satisfiable` and the tail. */
  | { readonly kind: 'unsatisfiable' }
  /** Succeeds without records. */
  | { readonly kind: 'empty' }

/** See {@link ReadPolicy.allowsEmpty}. */
export type EmptyReads = false | 'session' | 'always'

/** Deviations from the table of docs/protocol.md "Out of range", and between HTTP and in-process reads. */
export interface ReadPolicy {
  /**
   * Includes the records that were trimmed within the grace period (docs/protocol.md "Trimming"). Published
   * libraries append a stream's last records, a trim of all and a fence while its readers still connect.
   */
  readonly includesTrimmed?: boolean | undefined
  /**
   * Which reads succeed without records instead of being rejected:
   * - `false`: none
   * - `'session'`: an unbounded session with an explicit `wait=0` that starts exactly at the tail, and a read
   *   below the tail of a stream whose records are all trimmed or expired. Published clients of the public
   *   service rely on it.
   * - `'always'`: all of them. A start at a time after the last record moves to the tail, and a read that
   *   does not wait ends at the tail as it was when it began. This is how the library reads.
   */
  readonly allowsEmpty?: EmptyReads | undefined
}

/**
 * Decides where a read starts and ends, or that its range cannot be satisfied (docs/protocol.md
 * "Out of range"). A start below the tail may still turn out to have no record left: see
 * {@link afterLocating}. The grace period of trims began at `graceStart`, in milliseconds.
 */
export function planRead(
  query: ReadQuery,
  kind: ReadKind,
  state: Pick<StreamState, 'tail' | 'trimPoint'> & { readonly trims: readonly Trim[] },
  { allowsEmpty = false, includesTrimmed = false }: ReadPolicy,
  graceStart: number,
): ReadOutcome {
  const { tail } = state
  const bounded = query.count !== undefined || query.bytes !== undefined || query.until !== undefined
  const waitMs =
    kind === 'unary'
      ? Math.min(query.waitMs ?? 0, UNARY_WAIT_MS_MAX)
      : (query.waitMs ?? (bounded ? 0 : Number.POSITIVE_INFINITY))
  const isLocal = allowsEmpty === 'always'
  const chasesTail = kind === 'session' && !bounded && waitMs === 0 && !isLocal
  const start = startOf(query, tail)

  const isBeyond = 'seqNum' in start ? start.seqNum > tail.seqNum : start.timestamp > tail.timestamp
  const isClamped = query.clamp === true || (isLocal && 'timestamp' in start)
  if (isBeyond && !isClamped) return { kind: 'unsatisfiable' }
  const from = isBeyond ? { seqNum: tail.seqNum } : start

  if (waitMs === 0) {
    const atTail = tail.seqNum === 0 || ('seqNum' in from && from.seqNum === tail.seqNum)
    const isEmpty = isLocal || (chasesTail && allowsEmpty === 'session')
    if (atTail) return { kind: isEmpty ? 'empty' : 'unsatisfiable' }
  }
  const floor = includesTrimmed ? reclaimablePoint(state.trims, graceStart) : state.trimPoint
  return { kind: 'read', plan: { start: from, floor, limits: readLimits(query, kind), waitMs, chasesTail } }
}

/**
 * The decision after the storage has looked for the first record. A read that does not wait is unsatisfiable
 * if all records of its stream are trimmed or expired.
 */
export function afterLocating(
  plan: ReadPlan,
  hasRecord: boolean,
  { allowsEmpty = false }: ReadPolicy = {},
): ReadOutcome['kind'] {
  if (hasRecord || plan.waitMs > 0) return 'read'
  return allowsEmpty ? 'empty' : 'unsatisfiable'
}

function startOf({ seqNum, timestamp, tailOffset = 0 }: ReadQuery, tail: StreamPosition): ReadPlan['start'] {
  if (seqNum !== undefined) return { seqNum }
  if (timestamp !== undefined) return { timestamp: millisecondsOf(timestamp) }
  return { seqNum: Math.max(0, tail.seqNum - tailOffset) }
}

const HEARTBEAT_GAP_MS_MIN = 5_000
const HEARTBEAT_GAP_MS_MAX = 15_000

/**
 * Milliseconds of silence before the next heartbeat: from 5 s to below 15 s, so that many sessions do not
 * send theirs at the same time (docs/protocol.md "Heartbeats"). `random` is in [0, 1).
 */
export function heartbeatGapMs(random: number): number {
  return HEARTBEAT_GAP_MS_MIN + Math.floor(random * (HEARTBEAT_GAP_MS_MAX - HEARTBEAT_GAP_MS_MIN))
}

/** The remaining limits of a read; Infinity is unlimited. */
export interface ReadLimits {
  readonly count: number
  /** Metered bytes. */
  readonly bytes: number
  /** The timestamp, in milliseconds, before which the records must lie. */
  readonly until: number
}

/** The bounds of a query; 1,000 records and 1 MiB for a unary read (docs/protocol.md "Unary reads"). */
export function readLimits(query: ReadQuery, kind: 'unary' | 'session'): ReadLimits {
  const count = query.count ?? Number.POSITIVE_INFINITY
  const bytes = query.bytes ?? Number.POSITIVE_INFINITY
  return {
    count: kind === 'unary' ? Math.min(count, READ_RECORDS_MAX) : count,
    bytes: kind === 'unary' ? Math.min(bytes, READ_METERED_BYTES_MAX) : bytes,
    until: query.until === undefined ? Number.POSITIVE_INFINITY : millisecondsOf(query.until),
  }
}

/** The limits of the next batch of a session. */
export function withinBatch({ count, bytes, until }: ReadLimits): ReadLimits {
  return {
    count: Math.min(count, READ_RECORDS_MAX),
    bytes: Math.min(bytes, READ_METERED_BYTES_MAX),
    until,
  }
}

/** The limits that remain after delivering records. */
export function afterDelivering(limits: ReadLimits, count: number, bytes: number): ReadLimits {
  if (limits.count === Number.POSITIVE_INFINITY && limits.bytes === Number.POSITIVE_INFINITY) return limits
  return { count: limits.count - count, bytes: limits.bytes - bytes, until: limits.until }
}

/** Whether no further record can be delivered, however small. */
export function isExhausted(limits: ReadLimits): boolean {
  return limits.count <= 0 || limits.bytes <= 0
}

/** Whether all of these records are within the limits. `lastTimestamp` is the largest timestamp of them. */
export function admitsAll(
  limits: ReadLimits,
  records: { readonly count: number; readonly meteredBytes: number; readonly lastTimestamp: number },
): boolean {
  return (
    records.count <= limits.count &&
    records.meteredBytes <= limits.bytes &&
    records.lastTimestamp < limits.until
  )
}

/** The records that limits admit: the first `count` of them. */
export interface Admitted {
  readonly count: number
  readonly meteredBytes: number
}

export interface SizedRecord {
  readonly timestamp: number
  readonly meteredBytes: number
}

/**
 * Counts the records that the limits admit, from the first one. It stops at the first record that does not
 * fit, even if a later one would, and has no minimum of one record (docs/protocol.md "Bounds").
 */
export function admit(limits: ReadLimits, records: Iterable<SizedRecord>): Admitted {
  let meteredBytes = 0
  let count = 0
  for (const record of records) {
    const size = record.meteredBytes
    const fits =
      count < limits.count && meteredBytes + size <= limits.bytes && record.timestamp < limits.until
    if (!fits) break
    meteredBytes += size
    count++
  }
  return { count, meteredBytes }
}
