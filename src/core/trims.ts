/** A trim whose records may still be wanted by sessions that were open before it. */
export interface Trim {
  /** Records below are trimmed. */
  readonly point: number
  /** When, in milliseconds. */
  readonly at: number
}

/**
 * The trims of a stream after another one, ascending, at most three: the last that is past its grace, the first that is not, and the new
 * one. Keeping only the newest would never free anything in a stream that is trimmed more often than the grace is long.
 */
export function addTrim(trims: readonly Trim[], trim: Trim, graceMs: number): readonly Trim[] {
  const settled = trims.filter(({ at }) => at <= trim.at - graceMs)
  const pending = trims.filter(({ at }) => at > trim.at - graceMs)
  return [...settled.slice(-1), ...pending.slice(0, 1), trim]
}

/** Records below this may be freed: the furthest trim that was made at or before `before`. */
export function reclaimablePoint(trims: readonly Trim[], before: number): number {
  return trims.reduce((point, trim) => (trim.at <= before ? Math.max(point, trim.point) : point), 0)
}
