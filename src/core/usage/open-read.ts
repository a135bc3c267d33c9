import { alignDown, MINUTE_SECONDS } from './tiers.ts'

/** More minutes than these at once come only from a machine that slept: the earlier ones are put together. */
const MINUTES_APART_MAX = 60

/**
 * The operations that fell due for a streaming read since `counted` of them were told: one when it opens, one more for each further full
 * minute (wire-behaviour.md 11.3), each with the minute in which it fell due, in seconds. Times in milliseconds.
 */
export function dueOperations(
  read: { readonly openedAt: number; readonly counted: number },
  now: number,
): (readonly [minute: number, operations: number])[] {
  const due = 1 + Math.floor(Math.max(0, now - read.openedAt) / (MINUTE_SECONDS * 1000))
  const first = Math.max(read.counted, due - MINUTES_APART_MAX)
  return Array.from({ length: Math.max(0, due - first) }, (_, index) => {
    const at = Math.floor(read.openedAt / 1000) + (first + index) * MINUTE_SECONDS
    return [alignDown(at, MINUTE_SECONDS), index === 0 ? first - read.counted + 1 : 1] as const
  })
}
