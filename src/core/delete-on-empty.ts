/**
 * The longest time between two looks at a stream, in milliseconds: so long may a shorter age that was configured meanwhile take to be noticed,
 * and the deadline of a stream that was deleted lie about.
 */
const RECHECK_MS_MAX = 3_600_000

/** When to look at a stream whose age has just begun to count. */
export function firstCheckAt(minAgeSeconds: number, now: number): number {
  return now + Math.min(minAgeSeconds * 1000, RECHECK_MS_MAX)
}

/**
 * Whether a stream with delete-on-empty goes now, or when to look again (wire-behaviour.md 8.8): it goes when it holds no record and
 * nothing was written, its creation included, for the configured age. Null: the option is off.
 */
export function decideDeleteOnEmpty(
  stream: { readonly minAgeSeconds: number; readonly hasRecords: boolean; readonly lastWriteAt: number },
  now: number,
): 'delete' | { readonly checkAt: number } | null {
  if (stream.minAgeSeconds === 0) return null
  const idleAt = stream.lastWriteAt + stream.minAgeSeconds * 1000
  if (!stream.hasRecords && now >= idleAt) return 'delete'
  const earliest = stream.hasRecords ? firstCheckAt(stream.minAgeSeconds, now) : idleAt
  return { checkAt: Math.min(Math.max(earliest, idleAt), now + RECHECK_MS_MAX) }
}
