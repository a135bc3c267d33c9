import { UNARY_WAIT_SECONDS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { type ReadLimits, readLimits } from './read-limits.ts'
import type { StreamState } from './stream-state.ts'

/** A unary read returns one batch and is always bounded; a session delivers batches as they come. */
export type ReadKind = 'unary' | 'session'

export interface ReadPlan {
  readonly start: { readonly seqNum: number } | { readonly timestamp: number }
  /** Records below do not exist for this read: the trim point when it was opened. */
  readonly floor: number
  readonly limits: ReadLimits
  /** How long to wait at the tail, in milliseconds: 0 is not at all, Infinity for ever. */
  readonly waitMs: number
  /** An unbounded session that does not wait catches up to the tail as it moves; others to the tail as it was. */
  readonly chasesTail: boolean
}

export type ReadOutcome =
  | { readonly kind: 'read'; readonly plan: ReadPlan }
  /** 416: answered with the tail. */
  | { readonly kind: 'unsatisfiable' }
  /** Nothing to read, and that is fine: 200. */
  | { readonly kind: 'empty' }

export interface ReadPolicy {
  /**
   * What published clients of the public service rely on (rulings.md "Reading"): an unbounded session with an explicit `wait=0` that
   * starts exactly at the tail is empty instead of unsatisfiable.
   */
  readonly emptyAtTail?: boolean
}

/**
 * Where a read starts, what bounds it, or that it is a 416: the table of service-interface.md "Read records" rule 9, by effective wait.
 * A start that is below the tail may still turn out to have no record left: see `afterLocating`.
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
    if (atTail) return { kind: chasesTail && policy.emptyAtTail === true ? 'empty' : 'unsatisfiable' }
  }
  return {
    kind: 'read',
    plan: { start: from, floor: state.trimPoint, limits: readLimits(query, kind), waitMs, chasesTail },
  }
}

/**
 * What becomes of a plan once the storage was asked for its first record: without waiting, a read of a stream whose records are all
 * trimmed or expired is a 416 too (rulings.md "Reading").
 */
export function afterLocating(plan: ReadPlan, hasRecord: boolean): 'read' | 'unsatisfiable' {
  return hasRecord || plan.waitMs > 0 ? 'read' : 'unsatisfiable'
}

function effectiveWaitMs(waitSeconds: number | undefined, kind: ReadKind, bounded: boolean): number {
  if (kind === 'unary') return Math.min(waitSeconds ?? 0, UNARY_WAIT_SECONDS_MAX) * 1000
  return waitSeconds === undefined ? (bounded ? 0 : Number.POSITIVE_INFINITY) : waitSeconds * 1000
}

function startOf(query: ReadQuery, tail: StreamPosition): ReadPlan['start'] {
  if (query.seqNum !== undefined) return { seqNum: query.seqNum }
  if (query.timestamp !== undefined) return { timestamp: query.timestamp }
  return { seqNum: Math.max(0, tail.seqNum - (query.tailOffset ?? 0)) }
}
