interface AttemptState {
  readonly kind:
    | 'queued'
    /** Never when attempts are resolved: no write is in flight then. */
    | 'writing'
    | 'written'
    /** The storage failed; it may be written. */
    | 'failed'
    /** The storage had another head; it is not written. */
    | 'conflicted'
    /** Rejected against the head that the preceding appends would leave. */
    | 'refused'
    /** Stored by an earlier append, by what is known, or by one of the preceding ones. */
    | 'duplicate'
    /** It was skipped, because an earlier one of its group was rejected. */
    | 'discarded'
  /** Of a refusal or a duplicate: whether the storage had that head after the append was called. */
  readonly isFinal?: boolean | undefined
}

export interface Attempt {
  readonly state: AttemptState
  /** Appends of one group succeed or fail together, in order. `failed` tells whether an earlier one has. */
  readonly group?: { readonly failed: boolean } | undefined
}

/** The outcome of an append. `retry` sequences it again. */
export type AttemptOutcome = 'acknowledge' | 'fail' | 'refuse' | 'discard' | 'retry'

/**
 * Decides about all pending appends after a failure. Never retries a durable append, and never reports an
 * undecided one.
 *
 * - A written append is durable. So is a failed write that a later written one follows, because the later one
 *   found its head.
 * - A failure also fails the conflicts after it, which it caused, or discards them if they are of its group.
 *   Other conflicts are retried, and so are failures after them: the head that those expect does not exist.
 * - A duplicate is durable, and a rejection is final, if a later write found the head that it rests on. So it
 *   is if all appends before it were written, unless other engines may have changed the stream since.
 */
export function resolveAttempts(attempts: readonly Attempt[], shared: boolean): AttemptOutcome[] {
  const lastWritten = attempts.findLastIndex(isDurable)
  const failedGroups = new Set<object>()
  let hasFailure = false
  let hasConflict = false
  let isCertain = !shared

  const outcomeOf = ({ state: { kind, isFinal }, group }: Attempt, index: number): AttemptOutcome => {
    const isKnown = isFinal || isCertain || index < lastWritten
    const unlessGroupFailed = group && (failedGroups.has(group) || group.failed) ? 'discard' : 'retry'
    switch (kind) {
      case 'queued':
      case 'writing':
        return 'retry'
      case 'written':
        return 'acknowledge'
      case 'failed':
        if (index < lastWritten) return 'acknowledge'
        if (hasConflict && !hasFailure) return unlessGroupFailed
        hasFailure = true
        isCertain = false
        return 'fail'
      case 'conflicted':
        isCertain = false
        hasConflict = true
        return hasFailure && unlessGroupFailed === 'retry' ? 'fail' : unlessGroupFailed
      case 'refused':
        return isKnown ? 'refuse' : unlessGroupFailed
      case 'duplicate':
        return isKnown ? 'acknowledge' : unlessGroupFailed
      case 'discarded':
        return unlessGroupFailed
    }
  }

  return attempts.map((attempt, index) => {
    const outcome = outcomeOf(attempt, index)
    if (attempt.group && outcome !== 'acknowledge' && outcome !== 'retry') failedGroups.add(attempt.group)
    return outcome
  })
}

function isDurable({ state: { kind, isFinal } }: Attempt): boolean {
  return kind === 'written' || (kind === 'duplicate' && isFinal === true)
}
