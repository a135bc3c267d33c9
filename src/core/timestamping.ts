import type { StreamConfig } from '../model/config.ts'

/**
 * The timestamp that a record gets (wire-behaviour.md 3.7), or undefined when the mode demands one and none was given. Never below
 * `previous`, the timestamp of the record before it, whatever the mode and the clock say.
 */
export function assignTimestamp(
  given: number | undefined,
  previous: number,
  timestamping: StreamConfig['timestamping'],
  now: number,
): number | undefined {
  const chosen = timestamping.mode === 'arrival' ? now : given
  if (chosen === undefined && timestamping.mode === 'client-require') return undefined
  const wanted = chosen ?? now
  const capped = timestamping.uncapped ? wanted : Math.min(wanted, now)
  return Math.max(capped, previous)
}
