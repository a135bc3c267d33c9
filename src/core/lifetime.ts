/** When streams are deleted automatically: because they expire, or because they are empty. */

/** The end of a stream: at a time in milliseconds, or after seconds without use. Persisted. */
export type Expiry = { readonly at: number } | { readonly idleSeconds: number }

/** The latest uses of a stream that are known, in milliseconds. */
export interface StreamUse {
  readonly createdAt: number
  /** The last append, or the creation. */
  readonly appendedAt: number
  /** The last read that was recorded. Absent if there was none. */
  readonly readAt?: number | undefined
}

/** Whether to delete a stream, or when to check it again, in milliseconds. Null if never. */
export type LifetimeDecision = 'delete' | { readonly checkAt: number } | null

// Expiry

/** The longest time between a read and the read that was recorded before it, in milliseconds. */
const READ_STEP_MS_MAX = 60_000
/** The same as a part of the idle time. */
const READ_STEP_PART = 0.1

/** How old the last recorded use is when a read is recorded: not each read is written. */
function readStepMs(idleSeconds: number): number {
  return Math.min(idleSeconds * 1000 * READ_STEP_PART, READ_STEP_MS_MAX)
}

function lastUseAt({ createdAt, appendedAt, readAt = 0 }: StreamUse): number {
  return Math.max(createdAt, appendedAt, readAt)
}

/**
 * The time at which a stream expires, in milliseconds. It allows for a read that another engine has not
 * recorded, so that no stream expires early.
 */
export function streamExpiresAt(expiry: Expiry, use: StreamUse): number {
  if ('at' in expiry) return expiry.at
  return lastUseAt(use) + expiry.idleSeconds * 1000 + readStepMs(expiry.idleSeconds)
}

/** Whether a read at `now`, in milliseconds, has to be recorded for the stream to be kept long enough. */
export function isReadRecorded(expiry: Expiry, use: StreamUse, now: number): boolean {
  if ('at' in expiry) return false
  return now - lastUseAt(use) >= readStepMs(expiry.idleSeconds)
}

export function decideExpiry(expiry: Expiry | undefined, use: StreamUse, now: number): LifetimeDecision {
  if (expiry === undefined) return null
  const at = streamExpiresAt(expiry, use)
  return at <= now ? 'delete' : { checkAt: at }
}

// Deletion of empty streams

/**
 * The longest time between two checks of a stream, in milliseconds. It bounds how late a shortened age takes
 * effect, and how long the deadline of a deleted stream remains.
 */
const RECHECK_MS_MAX = 3_600_000

/** The time of the first check of a stream with delete-on-empty. */
export function firstCheckAt(minAgeSeconds: number, now: number): number {
  return now + Math.min(minAgeSeconds * 1000, RECHECK_MS_MAX)
}

/**
 * Decides about a stream with delete-on-empty: it is deleted if it has no records and was neither created nor
 * appended to for the configured age (docs/protocol.md "Delete on empty"). An age of 0 means that the option
 * is off.
 */
export function decideDeleteOnEmpty(
  stream: { readonly minAgeSeconds: number; readonly hasRecords: boolean; readonly lastWriteAt: number },
  now: number,
): LifetimeDecision {
  if (stream.minAgeSeconds === 0) return null
  const idleAt = stream.lastWriteAt + stream.minAgeSeconds * 1000
  if (!stream.hasRecords && now >= idleAt) return 'delete'
  const earliest = stream.hasRecords ? firstCheckAt(stream.minAgeSeconds, now) : idleAt
  return { checkAt: Math.min(Math.max(earliest, idleAt), now + RECHECK_MS_MAX) }
}
