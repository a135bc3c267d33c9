const HEARTBEAT_GAP_MS_MIN = 5_000
const HEARTBEAT_GAP_MS_MAX = 15_000

/**
 * How long a waiting session stays silent before the next heartbeat, in whole milliseconds: from 5 to below 15 s, spread so that many
 * sessions do not beat at once (wire-behaviour.md 5.9). `random` is in [0, 1).
 */
export function heartbeatGapMs(random: number): number {
  return HEARTBEAT_GAP_MS_MIN + Math.floor(random * (HEARTBEAT_GAP_MS_MAX - HEARTBEAT_GAP_MS_MIN))
}

/**
 * When a session that waits ends (wire-behaviour.md 5.4): `wait` after the last delivered batch or, when nothing was delivered, after it
 * first reached the tail. Heartbeats and lag recoveries do not move it.
 */
export function waitDeadline(since: number, waitMs: number): number {
  return since + waitMs
}
