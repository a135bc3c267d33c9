import { utf8Length } from '../model/bytes.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'

/** The beginning of the name of the outbox of a stream. */
export const OUTBOX_PREFIX = '.outbox/'

/** The limit for the name of a synced stream, beside which its outbox is stored, in bytes. */
export const SYNCED_NAME_BYTES_MAX = STREAM_NAME_BYTES_MAX - OUTBOX_PREFIX.length

/** Returns the problem with the name of a stream whose outbox could not be stored, or undefined. */
export function outboxNameProblem(name: string): string | undefined {
  if (utf8Length(name) <= SYNCED_NAME_BYTES_MAX) return undefined
  return `the name of a synced stream must not exceed ${SYNCED_NAME_BYTES_MAX} bytes in length`
}
