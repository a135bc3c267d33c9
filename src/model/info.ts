import type { Cipher } from './config.ts'
import type { StreamPosition } from './position.ts'

/** The one scope of the specification; a basin keeps it for ever. */
export const DEFAULT_SCOPE = 'aws:us-east-1'

/** What lists and creations tell of a basin (rulings.md "Basins"). */
export interface BasinInfo {
  readonly name: string
  readonly scope: string
  readonly location: string | null
  readonly state: 'active' | 'creating' | 'deleting'
  readonly createdAt: Date
  /** Null unless the basin is being deleted. */
  readonly deletedAt: Date | null
}

/** What lists and creations tell of a stream (wire-behaviour.md 1.8). */
export interface StreamInfo {
  readonly name: string
  readonly createdAt: Date
  readonly deletedAt: Date | null
  readonly cipher: Cipher | null
}

/** A place where basins can be (wire-behaviour.md 1.8). */
export interface LocationInfo {
  readonly name: string
  readonly isPrivate: boolean
}

export type ProvisionResult = 'created' | 'updated' | 'noop'

export interface Provisioned<Info> {
  readonly result: ProvisionResult
  readonly info: Info
}

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** Whether a further match exists beyond this page. */
  readonly hasMore: boolean
}

/** Which part of a list to return: both conditions apply, in the order of the names' UTF-8 bytes. */
export interface ListQuery {
  readonly prefix?: string | undefined
  /** Exclusive lower bound; need not have the prefix. */
  readonly startAfter?: string | undefined
  /** 1 to 1000; anything else is 1000. */
  readonly limit?: number | undefined
}

export interface AppendAck {
  /** Sequence number and timestamp of the first record. */
  readonly start: StreamPosition
  /** Sequence number after the last record, and the timestamp of the last record. */
  readonly end: StreamPosition
  /** The durable tail when the ack was released: at or beyond `end`. */
  readonly tail: StreamPosition
}
