/** An append when no write is in progress. */
export interface Attempt {
  readonly state:
    | 'queued'
    /** Stored, by this append or, as it was found after the append was requested, by an earlier one. */
    | 'written'
    /** The storage failed; it may be written. */
    | 'failed'
    /** The storage had another head; it is not written. */
    | 'conflicted'
    /** Rejected against the head that the preceding attempts would leave. */
    | 'refused'
    /** Rejected against the stored head after the append was requested. */
    | 'rejected'
    /** Stored before, by what is known, or by one of the preceding attempts. */
    | 'duplicate'
    /** It was skipped, because an earlier one of its group was rejected. */
    | 'discarded'
  /** Attempts of one group succeed or fail together, in order. */
  readonly group?: object | undefined
  readonly groupHasFailed?: boolean | undefined
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
  const lastWritten = attempts.findLastIndex(({ state }) => state === 'written')
  const failedGroups = new Set<object>()
  let hasFailure = false
  let hasConflict = false
  let isCertain = !shared

  const outcomeOf = ({ state, group, groupHasFailed }: Attempt, index: number): AttemptOutcome => {
    const isKnown = isCertain || index < lastWritten
    const unlessGroupFailed = (group && failedGroups.has(group)) || groupHasFailed ? 'discard' : 'retry'
    switch (state) {
      case 'queued':
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
      case 'rejected':
        return 'refuse'
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
