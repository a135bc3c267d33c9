import { utf8Length } from '../model/bytes.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'
import { streamNameProblem } from '../model/names.ts'

/** The beginning of the name of the outbox of a stream. */
export const OUTBOX_PREFIX = '.outbox/'

/** The limit for the name of a synced stream, beside which its outbox is stored, in bytes. */
export const SYNCED_NAME_BYTES_MAX = STREAM_NAME_BYTES_MAX - OUTBOX_PREFIX.length

/** Returns the problem with the name of a stream whose outbox could not be stored, or undefined. */
export function outboxNameProblem(name: string): string | undefined {
  if (utf8Length(name) <= SYNCED_NAME_BYTES_MAX) return undefined
  return `the name of a synced stream must not exceed ${SYNCED_NAME_BYTES_MAX} bytes in length`
}

/** Streams that sync keeps beside the app's: outboxes, snapshots of folds, names of elections. */
const INTERNAL = [OUTBOX_PREFIX, '.fold/', '.basin/']

/** Returns the problem with the name of a synced stream below a prefix, or undefined. */
export function syncedNameProblem(name: string, prefix: string): string | undefined {
  const problem = streamNameProblem(name)
  if (problem !== undefined) return problem
  if (!name.startsWith(prefix)) return `the name of the stream must begin with ${JSON.stringify(prefix)}`
  if (isInternalName(name)) return 'the name of the stream is one that sync uses itself'
  return outboxNameProblem(name)
}

/** Returns whether a name, or the beginning of one, belongs to streams that sync keeps beside the app's. */
export function isInternalName(name: string): boolean {
  return INTERNAL.some((prefix) => name.startsWith(prefix))
}
