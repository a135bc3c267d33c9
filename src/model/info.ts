import { assertFencingToken, type RecordInput } from './append-input.ts'
import { utf8Length } from './bytes.ts'
import { assertStreamConfig, type Cipher, isCipher, type StreamConfigInput } from './config.ts'
import type { EncryptionKeyInput } from './encryption-key.ts'
import { invalid } from './errors.ts'
import { LIST_LIMIT_MAX, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX } from './limits.ts'
import type { StreamPosition, StreamTail } from './position.ts'
import {
  assertInteger,
  assertMembers,
  assertTime,
  type Check,
  complete,
  type MembersOf,
  type Time,
  unchecked,
} from './validation.ts'

/** The location of every basin (docs/protocol.md "Locations"). */
export const LOCATION: LocationInfo = Object.freeze({ name: 'aws:us-east-1', isPrivate: false })

/** A basin in lists and after creation (docs/protocol.md "Basin and stream infos"). */
export interface BasinInfo {
  readonly name: string
  /** @internal The location of the basin, which only the wire protocol has. */
  readonly location: string
  /** Whether the basin can be used. */
  readonly state: 'active' | 'deleting'
  readonly createdAt: Date
  /** The time at which its deletion was requested; null unless it is being deleted. */
  readonly deletedAt: Date | null
}

/** A stream in lists and after creation (docs/protocol.md "Basin and stream infos"). */
export interface StreamInfo {
  readonly name: string
  readonly createdAt: Date
  /**
   * The time at which its deletion was requested; null unless it is being deleted. The name of a stream with
   * forks is free again when they are deleted.
   */
  readonly deletedAt: Date | null
  /** The metadata that was given at its creation. Absent if there is none. */
  readonly metadata?: StreamMetadata | undefined
  /** The end of the stream. Absent: none. */
  readonly expiry?: StreamExpiry | undefined
  /** The cipher that encrypts its records; null if they are plain. */
  readonly cipher: Cipher | null
}

/** A location of basins (docs/protocol.md "Locations"). */
export interface LocationInfo {
  readonly name: string
  /** Whether the location is reserved for the account. */
  readonly isPrivate: boolean
}

/** The effect of creating or ensuring a basin or stream. */
export type ProvisionResult = 'created' | 'updated' | 'noop'

/** The result of creating or ensuring a basin or stream. */
export interface Provisioned<Info> {
  /** Whether it was created, changed, or left as it was (`noop`). */
  readonly result: ProvisionResult
  readonly info: Info
}

/** One page of a list. */
export interface Page<Item> {
  /** The items in the order of their names' UTF-8 bytes. */
  readonly items: readonly Item[]
  /** Whether the list continues after this page. */
  readonly hasMore: boolean
}

export const EMPTY_PAGE: Page<never> = { items: [], hasMore: false }

/** Selects a page of a list, in the order of the names' UTF-8 bytes. Both conditions apply. */
export interface ListQuery {
  /** The prefix of the names to list. */
  readonly prefix?: string | undefined
  /** The name after which the list begins. It need not exist or have the prefix. */
  readonly startAfter?: string | undefined
  /** The size of a page, 1 to 1,000. Anything else is 1,000. */
  readonly limit?: number | undefined
}

/** The members of {@link ListQuery}. The rules of names and prefixes depend on what is listed. */
export const LIST_QUERY: MembersOf<ListQuery> = {
  prefix: 'string',
  startAfter: 'string',
  limit: (value, field) => {
    if (!Number.isInteger(value)) throw invalid(`\`${field}\` must be an integer`, field)
  },
}

/** The size of a page: 1 to 1,000, and 1,000 for anything else (docs/protocol.md "Lists"). */
export function listLimit(limit: number | undefined): number {
  return limit === undefined || !(limit >= 1 && limit <= LIST_LIMIT_MAX) ? LIST_LIMIT_MAX : Math.floor(limit)
}

/** A page of up to `limit + 1` matches. The last one only shows that the list continues. */
export function pageOf<Match, Item>(
  matches: readonly Match[],
  limit: number,
  item: (match: Match) => Item,
): Page<Item> {
  return { items: matches.slice(0, limit).map(item), hasMore: matches.length > limit }
}

/** The positions of an append that is durable. */
export interface AppendAck {
  /** The sequence number and timestamp of the first record. */
  readonly start: StreamPosition
  /** The sequence number after the last record, and the timestamp of the last record. */
  readonly end: StreamPosition
  /** The tail of the stream when the ack was sent, at or beyond `end`. */
  readonly tail: StreamTail
  /** True if an earlier append has stored the batch; the positions are those of that one. See `producer`. */
  readonly duplicate?: true | undefined
}

// Creation

/** Texts that an application keeps with a stream, such as the type of its content. They never change. */
export type StreamMetadata = Readonly<Record<string, string>>

/** The end of a stream, whatever it holds: it is deleted. It never changes. */
export type StreamExpiry =
  | { readonly at: Date }
  /** The seconds without an append or a read after which it is deleted: see {@link StreamCreation}. */
  | { readonly idleSeconds: number }

/** How a new stream begins, besides its configuration. */
export interface StreamCreation {
  /**
   * Texts that are stored with the stream and listed with it: at most 16, and 2 KiB of UTF-8 with their
   * names. None by default.
   */
  readonly metadata?: StreamMetadata | undefined
  /**
   * The time at which the stream is deleted, or the idle seconds after which it is. Appends and new reads
   * restart the idle time; tail checks do not. Not every read is recorded, so an idle stream may be deleted
   * later, by a tenth of the idle time and at most a minute. By default, the stream never expires.
   */
  readonly expiry?: { readonly at: Time } | { readonly idleSeconds: number } | undefined
  /**
   * Begins the stream with a copy of the records of another stream in the basin: those below `seqNum`, or
   * all. They keep their sequence numbers and timestamps. If the other stream is deleted first, its name
   * stays reserved until its forks are deleted.
   */
  readonly fork?: { readonly stream: string; readonly seqNum?: number | undefined } | undefined
  /** The first records, after those of the fork: a batch that is stored with the stream or not at all. */
  readonly records?: readonly RecordInput[] | undefined
  /**
   * The key of `records` and of the records of a fork, which are decrypted, and encrypted again for the new
   * stream. Required if either stream is encrypted, and ignored otherwise.
   */
  readonly encryptionKey?: EncryptionKeyInput | undefined
}

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
    if (!name.isWellFormed() || !text.isWellFormed())
      throw invalid(`\`${field}\` must be valid Unicode`, field)
    bytes += utf8Length(name) + utf8Length(text)
  }
  if (bytes > METADATA_BYTES_MAX) {
    throw invalid(`\`${field}\` must not exceed ${METADATA_BYTES_MAX} bytes, not ${bytes}`, field)
  }
}

const assertExpiry: Check = (value, field) => {
  assertMembers(value, { at: unchecked, idleSeconds: unchecked }, field, `${field}.`)
  const { at, idleSeconds } = value as { readonly at?: Time | undefined; readonly idleSeconds?: unknown }
  if ((at === undefined) === (idleSeconds === undefined)) {
    throw invalid(`\`${field}\` must have either \`at\` or \`idleSeconds\``, field)
  }
  if (at === undefined) assertInteger(idleSeconds, `${field}.idleSeconds`)
  else assertTime(at, `${field}.at`)
}

const assertFork: Check = (value, field) => {
  assertMembers(value, { stream: 'string', seqNum: assertInteger }, field, `${field}.`)
  if ((value as { readonly stream?: string | undefined }).stream === undefined) {
    throw invalid(`\`${field}.stream\` is required`, `${field}.stream`)
  }
}

/** The members of {@link StreamCreation}. Records and keys are checked where they are used. */
export const STREAM_CREATION: MembersOf<StreamCreation> = {
  metadata: assertMetadata,
  expiry: assertExpiry,
  fork: assertFork,
  records: unchecked,
  encryptionKey: unchecked,
}

export function assertStreamCreation({ metadata, expiry, fork }: StreamCreation): void {
  assertMembers({ metadata, expiry, fork }, STREAM_CREATION, 'options')
}

/** A stream that continues another one whose records before `start` are gone. Its idle time begins again. */
export interface RestoredStream extends Pick<StreamCreation, 'metadata' | 'expiry'> {
  /** Settings over the basin's defaults. None by default. */
  readonly config?: StreamConfigInput | undefined
  /** The sequence number of its next record, and the lowest timestamp of a record, in milliseconds. */
  readonly start: { readonly seqNum: number; readonly timestamp: Time }
  /** The fencing token, at most 36 bytes. `''`, the default, sets none. */
  readonly fencingToken?: string | undefined
  /** `null` stores plain text. By default the cipher of the basin's configuration applies. */
  readonly cipher?: Cipher | null | undefined
}

export const RESTORED_STREAM: MembersOf<RestoredStream> = {
  config: (value) => assertStreamConfig(value as StreamConfigInput),
  start: complete({ seqNum: assertInteger, timestamp: assertTime }),
  fencingToken: assertFencingToken,
  cipher: isCipher,
  metadata: assertMetadata,
  expiry: assertExpiry,
}
