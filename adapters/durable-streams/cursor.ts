/** The intervals of cursors begin on 9 October 2024, 00:00 UTC, as the protocol says. */
const EPOCH_MS = Date.UTC(2024, 9, 9)
const INTERVAL_MS = 20_000
/** The most intervals by which a repeated cursor is advanced: an hour. */
const JITTER_MAX = 180

/**
 * Makes the cursors of one response. A cursor is the number of the present interval, so that requests of many
 * clients have the same address; it is always greater than the one that the client sent, so that no cache
 * answers it for ever. `random` is in [0, 1).
 */
export function cursorsOf(sent: string | null, now: number, random: () => number): (now: number) => string {
  const known = sent !== null && /^\d{1,15}$/.test(sent) ? Number(sent) : -1
  const least = known < intervalOf(now) ? 0 : known + 1 + Math.floor(random() * JITTER_MAX)
  return (at) => String(Math.max(intervalOf(at), least))
}

function intervalOf(now: number): number {
  return Math.max(0, Math.floor((now - EPOCH_MS) / INTERVAL_MS))
}
