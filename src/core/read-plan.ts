import { UNARY_WAIT_SECONDS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { millisecondsOf } from '../model/validation.ts'
import { type ReadLimits, readLimits } from './read-limits.ts'
import type { StreamState } from './stream-state.ts'

/** A unary read returns one batch and is always bounded; a session delivers batches as they arrive. */
export type ReadKind = 'unary' | 'session'

/** How a read is performed. */
export interface ReadPlan {
  /** The first record: by sequence number, or the first with this timestamp or a later one. */
  readonly start: { readonly seqNum: number } | { readonly timestamp: number }
  /** The trim point when the read was opened: it never returns records below it. */
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

/** Deviations from the table of docs/protocol.md "Out of range". */
export interface ReadPolicy {
  /**
   * Succeeds without records, instead of rejecting, an unbounded session with an explicit `wait=0` that
   * starts exactly at the tail, and a read below the tail of a stream whose records are all trimmed or
   * expired. Published clients of the public service rely on it.
   */
  readonly allowsEmpty?: boolean
}

/**
 * Decides where a read starts and ends, or that its range cannot be satisfied (docs/protocol.md
 * "Out of range"). A start below the tail may still turn out to have no record left: see
 * {@link afterLocating}.
 */
export function planRead(
  query: ReadQuery,
  kind: ReadKind,
  state: Pick<StreamState, 'tail' | 'trimPoint'>,
  policy: ReadPolicy = {},
): ReadOutcome {
  const { tail } = state
  const bounded = query.count !== undefined || query.bytes !== undefined || query.until !== undefined
  const waitMs = effectiveWaitMs(query.waitSeconds, kind, bounded)
  const chasesTail = kind === 'session' && !bounded && waitMs === 0
  const start = startOf(query, tail)

  const isBeyond = 'seqNum' in start ? start.seqNum > tail.seqNum : start.timestamp > tail.timestamp
  if (isBeyond && !query.clamp) return { kind: 'unsatisfiable' }
  const from = isBeyond ? { seqNum: tail.seqNum } : start

  if (waitMs === 0) {
    const atTail = tail.seqNum === 0 || ('seqNum' in from && from.seqNum === tail.seqNum)
    if (atTail) return { kind: chasesTail && policy.allowsEmpty === true ? 'empty' : 'unsatisfiable' }
  }
  return {
    kind: 'read',
    plan: { start: from, floor: state.trimPoint, limits: readLimits(query, kind), waitMs, chasesTail },
  }
}

/**
 * The decision after the storage has looked for the first record. A read that does not wait is unsatisfiable
 * if all records of its stream are trimmed or expired.
 */
export function afterLocating(
  plan: ReadPlan,
  hasRecord: boolean,
  policy: ReadPolicy = {},
): ReadOutcome['kind'] {
  if (hasRecord || plan.waitMs > 0) return 'read'
  return policy.allowsEmpty === true ? 'empty' : 'unsatisfiable'
}

function effectiveWaitMs(waitSeconds: number | undefined, kind: ReadKind, bounded: boolean): number {
  if (kind === 'unary') return Math.min(waitSeconds ?? 0, UNARY_WAIT_SECONDS_MAX) * 1000
  return waitSeconds === undefined ? (bounded ? 0 : Number.POSITIVE_INFINITY) : waitSeconds * 1000
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
