const FIRST_MS = 500
const MOST_MS = 30_000

/**
 * Milliseconds to wait before the next attempt after a number of failures in succession, at least 1. It
 * doubles from 0.5 to 30 seconds, of which the half is random, so that devices that lost the same server do
 * not come back all at once. `random` is in [0, 1).
 */
export function backOffMs(failures: number, random: number): number {
  const most = Math.min(FIRST_MS * 2 ** (failures - 1), MOST_MS)
  return Math.round((most * (1 + random)) / 2)
}
