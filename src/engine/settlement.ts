/** What came of an append, when no write is under way any more. */
export interface Attempt {
  readonly outcome:
    | 'queued'
    | 'written'
    /** The storage failed: written or not. */
    | 'failed'
    /** The storage had another head: not written. */
    | 'conflicted'
    /** Refused against the head that the attempts before it were to leave. */
    | 'refused'
    /** Refused against what the storage held after the append was asked for. */
    | 'refused for good'
    /** Not made, because one before it in its group was refused. */
    | 'discarded'
  /** Attempts of one group stand or fall together, in order. */
  readonly group?: object | undefined
  readonly groupHasFailed?: boolean | undefined
}

/** What it is told; `again` is nothing yet. */
export type Verdict = 'acknowledge' | 'fail' | 'refuse' | 'discard' | 'again'

/**
 * What can be told after trouble, wherever an append stands: nothing that is durable may be tried again, nothing that is open may be told.
 *
 * - What was written is durable. So is a write that failed but is followed by one that was written: that one found its head.
 * - A failure fails the conflicts behind it, which it caused. Other conflicts are tried again, and so are failures behind them: the head that those
 *   expect never came to be.
 * - A refusal stands when all before it was written, unless other engines may have changed the stream since.
 */
export function settle(attempts: readonly Attempt[], shared: boolean): Verdict[] {
  const lastWritten = attempts.findLastIndex(({ outcome }) => outcome === 'written')
  const failedGroups = new Set<object>()
  let hasFailure = false
  let hasConflict = false
  let isCertain = true

  const verdictOf = ({ outcome, group, groupHasFailed }: Attempt, index: number): Verdict => {
    const unlessGroupFailed = (group && failedGroups.has(group)) || groupHasFailed ? 'discard' : 'again'
    switch (outcome) {
      case 'queued':
        return 'again'
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
        return hasFailure ? 'fail' : unlessGroupFailed
      case 'refused':
        return isCertain && !shared ? 'refuse' : unlessGroupFailed
      case 'refused for good':
        return 'refuse'
      case 'discarded':
        return unlessGroupFailed
    }
  }

  return attempts.map((attempt, index) => {
    const verdict = verdictOf(attempt, index)
    if (attempt.group && verdict !== 'acknowledge' && verdict !== 'again') failedGroups.add(attempt.group)
    return verdict
  })
}
