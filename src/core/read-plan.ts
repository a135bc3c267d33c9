import { UNARY_WAIT_MS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { millisecondsOf } from '../model/validation.ts'
import { type ReadLimits, readLimits } from './read-limits.ts'
import { reclaimablePoint, type Trim } from './retention.ts'
import type { StreamState } from './stream-state.ts'

/** A unary read returns one batch and is always bounded; a session delivers batches as they arrive. */
export type ReadKind = 'unary' | 'session'

/** How a read is performed. */
export interface ReadPlan {
  /** The first record: by sequence number, or the first with this timestamp or a later one. */
  readonly start: { readonly seqNum: number } | { readonly timestamp: number }
  /** The read never returns records below it: the trim point when it was opened, or an earlier one. */
  readonly floor: number
  /** The bounds of the read. */
  readonly limits: ReadLimits
  /** Milliseconds to wait at the tail; Infinity waits forever. */
  readonly waitMs: number
  /** Whether the read ends at the tail as it moves, instead of the tail as it was at the start. */
  readonly chasesTail: boolean
}

/** The decision about a read. */
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
