import type { RecordInput } from './append-input.ts'
import { isWellFormed, utf8Length } from './bytes.ts'
import { invalid } from './errors.ts'
import { METADATA_BYTES_MAX, METADATA_ENTRIES_MAX } from './limits.ts'
import {
  assertInteger,
  assertMembers,
  type Check,
  type MembersOf,
  millisecondsOf,
  type Time,
  unchecked,
} from './validation.ts'

/** What an application knows about a stream, such as the type of its content. It never changes. */
export type StreamMetadata = Readonly<Record<string, string>>

/** When a stream is deleted, whatever it holds. It never changes. */
export type StreamExpiry =
  /** At this time. */
  | { readonly at: Date }
  /** After this many seconds in which it was neither appended to nor read, as {@link StreamCreation} says. */
  | { readonly idleSeconds: number }

/** How a new stream begins, besides its configuration. */
export interface StreamCreation {
  /**
   * Texts that are stored with the stream and listed with it: at most 16, and 2 KiB of UTF-8 with their
   * names. Default: none.
   */
  readonly metadata?: StreamMetadata | undefined
  /**
   * When the stream is deleted: at a time, or after a number of idle seconds. Appends and the opening of
   * reads renew the latter; tail checks do not. Reads are recorded only now and then, so an idle stream is
   * deleted up to a tenth of the time later, at most a minute. Default: never.
   */
  readonly expiry?: { readonly at: Time } | { readonly idleSeconds: number } | undefined
  /**
   * Begins the stream with a copy of the records of another stream in the basin: those below `seqNum`, or
   * all. They keep their sequence numbers and timestamps. If the other stream is deleted first, its name
   * stays reserved until its forks are deleted.
   */
  readonly fork?: { readonly stream: string; readonly seqNum?: number | undefined } | undefined
  /** The first records, after those of the fork: stored with the stream, or not at all. Limited as a batch. */
  readonly records?: readonly RecordInput[] | undefined
}

/** The rule of the member `metadata`. */
const assertMetadata: Check = (value, field) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`\`${field}\` must be an object`, field)
  }
  const entries = Object.entries(value)
  if (entries.length > METADATA_ENTRIES_MAX) {
    throw invalid(
      `\`${field}\` must not exceed ${METADATA_ENTRIES_MAX} entries, not ${entries.length}`,
      field,
    )
  }
  let bytes = 0
  for (const [name, text] of entries) {
    if (typeof text !== 'string') throw invalid(`\`${field}\` must contain only strings`, field)
    if (!isWellFormed(name) || !isWellFormed(text)) throw invalid(`\`${field}\` must be valid Unicode`, field)
    bytes += utf8Length(name) + utf8Length(text)
  }
  if (bytes > METADATA_BYTES_MAX) {
    throw invalid(`\`${field}\` must not exceed ${METADATA_BYTES_MAX} bytes, not ${bytes}`, field)
  }
}

/** The rule of the member `expiry`. */
const assertExpiry: Check = (value, field) => {
  assertMembers(value, { at: unchecked, idleSeconds: unchecked }, field, `${field}.`)
  const { at, idleSeconds } = value as { readonly at?: Time | undefined; readonly idleSeconds?: unknown }
  if ((at === undefined) === (idleSeconds === undefined)) {
    throw invalid(`\`${field}\` must have either \`at\` or \`idleSeconds\``, field)
  }
  if (at === undefined) assertInteger(idleSeconds, `${field}.idleSeconds`)
  else assertInteger(millisecondsOf(at), `${field}.at`)
}

const assertFork: Check = (value, field) => {
  assertMembers(value, { stream: 'string', seqNum: assertInteger }, field, `${field}.`)
  if ((value as { readonly stream?: string | undefined }).stream === undefined) {
    throw invalid(`\`${field}.stream\` is required`, `${field}.stream`)
  }
}

/** The members of {@link StreamCreation}. Records are checked where they are used. */
export const STREAM_CREATION: MembersOf<StreamCreation> = {
  metadata: assertMetadata,
  expiry: assertExpiry,
  fork: assertFork,
  records: unchecked,
}
