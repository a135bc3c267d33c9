import { type ErrorCode, HeadwaterError } from '../model/errors.ts'

/** What failures mean for sync, and how long it waits after them. */

const FIRST_MS = 500
const MOST_MS = 30_000
/** The longest wait that a server can ask for. */
const ASKED_MS_MAX = 600_000

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

/** Returns the code of a `HeadwaterError`, and undefined for any other value. */
export function codeOf(error: unknown): ErrorCode | undefined {
  return HeadwaterError.is(error) ? error.code : undefined
}

/** Returns the error itself if it is a `HeadwaterError`, else `other` with the error as the cause. */
export function asHeadwaterError(error: unknown): HeadwaterError {
  if (HeadwaterError.is(error)) return error
  return new HeadwaterError('other', String((error as { message?: unknown })?.message ?? error), {
    cause: error,
  })
}
