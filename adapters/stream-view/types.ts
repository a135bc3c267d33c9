import type { ReadQuery, RecordFormat, Stream } from '../../src/index.ts'
import type { RecordAs } from '../../src/model/record.ts'

/** The state of a stream that a component shows. The object changes only when a member does. */
export interface StreamView<Item> {
  /**
   * The latest records that the session has read, in order: at most `recordsMax`. Those of a synced stream
   * end with all pending records in addition.
   */
  readonly records: readonly Item[]
  /**
   * - `loading`: reads stored records, or has not begun
   * - `live`: has read everything that was stored, and follows
   * - `ended`: a bound of the query is reached
   * - `error`: the session failed; `records` keeps what was read before
   */
  readonly status: 'loading' | 'live' | 'ended' | 'error'
  /** The failure if `status` is `error`, a `HeadwaterError` unless there is a bug. */
  readonly error: Error | undefined
}

/** Options of `useStream`. */
export interface UseStreamOptions<Format extends RecordFormat = RecordFormat> {
  /** The type of bodies and headers, as for `follow`. Default `'string'`. */
  readonly as?: Format | undefined
  /** Whether a missing stream is created instead of failing with `stream_not_found`. Default false. */
  readonly create?: boolean | undefined
  /** How many of the latest records are kept, at least 1. Default 1,000; `Infinity` keeps all. */
  readonly recordsMax?: number | undefined
}

/** The part of a stream that `useStream` needs. */
export interface RecordSource<Item> {
  /** Makes a session that follows, and that the signal ends. */
  follow(
    query: ReadQuery,
    options: { readonly signal: AbortSignal },
  ): {
    /** Yields batches, and heartbeats while it waits at the tail. */
    events(): AsyncIterable<
      | { readonly kind: 'batch'; readonly batch: { readonly records: readonly Item[] } }
      | { readonly kind: 'heartbeat' }
    >
  }
  /**
   * Returns whether another handle reads the same stream in the same way. Handles are compared by identity by
   * default.
   */
  equals?(other: unknown): boolean
}

/** The part of a synced stream that `useStream` needs. */
export interface ChangingSource<Item> {
  /** Iterates over changes: records that were confirmed, and all records that are pending. */
  changes(
    query: ReadQuery,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<{
    readonly isReset?: boolean | undefined
    readonly confirmed: readonly Item[]
    readonly pending: readonly { readonly item: Item }[]
    readonly isCaughtUp: boolean
  }>
  /**
   * Returns whether another handle reads the same stream in the same way. Handles are compared by identity by
   * default.
   */
  equals?(other: unknown): boolean
}

/** What a component may follow. */
export type FollowedSource<Item> = RecordSource<Item> | ChangingSource<Item>

/** The records that a source yields. */
export type ItemOf<Source, Format extends RecordFormat> = Source extends Stream
  ? RecordAs<Format>
  : Source extends FollowedSource<infer Item>
    ? Item
    : never

/** What `useSyncState` needs of a synced stream, a mirror or an outbox. */
export interface StateSource<State> {
  /** The current state. */
  readonly state: State
  /** Emits the current state, then each further one. */
  readonly state$: { subscribe(observer: (state: State) => void): { unsubscribe(): void } }
}
