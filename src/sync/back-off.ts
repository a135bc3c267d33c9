const FIRST_MS = 500
const MOST_MS = 30_000
/** The longest wait that a server can ask for. */
const ASKED_MS_MAX = 600_000

const CONTENTION_MS_MAX = 5_000

/**
 * Milliseconds to wait before an append that `writers` others make too. They spread their attempts, each of
 * which takes `attemptMs`, so that a few compete at a time instead of all: for one that succeeds, the server
 * rejects a few and not all. `random` is in [0, 1).
 */
export function contentionMs(writers: number, attemptMs: number, random: number): number {
  return Math.min(random * writers * attemptMs, CONTENTION_MS_MAX)
}

/**
 * Milliseconds to wait before the next attempt after a number of failures in succession, at least 1. It
 * doubles from 0.5 to 30 seconds, of which the half is random, so that devices that lost the same server do
 * not come back all at once. What the server asks for, up to 10 minutes, comes in addition. `random` is in
 * [0, 1).
 */
export function backOffMs(failures: number, random: number, askedMs = 0): number {
  const most = Math.min(FIRST_MS * 2 ** (failures - 1), MOST_MS)
  return Math.round((most * (1 + random)) / 2 + Math.min(askedMs, ASKED_MS_MAX))
}
