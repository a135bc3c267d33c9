import { type Expiry, expiresAt, type StreamUse } from './expiry.ts'
import { firstCheckAt, RECHECK_MS_MAX } from './retention.ts'

/**
 * Decides whether to delete a stream with delete-on-empty, or when to check it again: it is deleted if it has
 * no records and was neither created nor appended to for the configured age (docs/protocol.md "Delete on
 * empty"). Null if the option is off. Times are in milliseconds.
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

/** Decides about a stream whose deadline has passed. Null if it never expires. Times are in milliseconds. */
export function decideExpiry(
  expiry: Expiry | undefined,
  use: StreamUse,
  now: number,
): 'delete' | { readonly checkAt: number } | null {
  if (expiry === undefined) return null
  const at = expiresAt(expiry, use)
  return at <= now ? 'delete' : { checkAt: at }
}
