import type { Cipher } from './config.ts'
import type { StreamExpiry, StreamMetadata } from './creation.ts'
import { invalid } from './errors.ts'
import { LIST_LIMIT_MAX } from './limits.ts'
import type { StreamPosition, StreamTail } from './position.ts'
import type { MembersOf } from './validation.ts'

/** The location of every basin (docs/protocol.md "Locations"). */
export const LOCATION: LocationInfo = Object.freeze({ name: 'aws:us-east-1', isPrivate: false })

/** A basin in lists and after creation (docs/protocol.md "Basin and stream infos"). */
export interface BasinInfo {
  /** The name of the basin. */
  readonly name: string
  /** @internal The location of the basin, which only the wire protocol has. */
  readonly location: string
  /** Whether the basin can be used. */
  readonly state: 'active' | 'deleting'
  /** The time of creation. */
  readonly createdAt: Date
  /** The time at which its deletion was requested; null unless it is being deleted. */
  readonly deletedAt: Date | null
}

/** A stream in lists and after creation (docs/protocol.md "Basin and stream infos"). */
export interface StreamInfo {
  /** The name of the stream. */
  readonly name: string
  /** The time of creation. */
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
  /** The basin or stream. */
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
