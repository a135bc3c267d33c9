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
export function expiresAt(expiry: Expiry, use: StreamUse): number {
  if ('at' in expiry) return expiry.at
  return lastUseAt(use) + expiry.idleSeconds * 1000 + readStepMs(expiry.idleSeconds)
}

/** Whether a read at `now`, in milliseconds, has to be recorded for the stream to be kept long enough. */
export function isReadRecorded(expiry: Expiry, use: StreamUse, now: number): boolean {
  if ('at' in expiry) return false
  return now - lastUseAt(use) >= readStepMs(expiry.idleSeconds)
}
