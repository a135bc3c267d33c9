import type { ReadQuery, RecordFormat, Stream } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
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

/**
 * The part of a stream that `useStream` needs.
 *
 * ```ts
 * // A stream of which a component shows the records that contain a word.
 * class WithWord implements RecordSource<TextRecord> {
 *   constructor(
 *     readonly source: Stream,
 *     readonly word: string,
 *   ) {}
 *
 *   follow(query: ReadQuery, options: { readonly signal: AbortSignal }) {
 *     return { events: () => this.events(query, options) }
 *   }
 *
 *   async *events(query: ReadQuery, options: { readonly signal: AbortSignal }) {
 *     for await (const event of this.source.follow(query, options).events()) {
 *       if (event.kind === 'heartbeat') yield event
 *       else {
 *         const records = event.batch.records.filter(({ body }) => body.includes(this.word))
 *         yield { kind: event.kind, batch: { records } }
 *       }
 *     }
 *   }
 *
 *   // A component that makes another object while it renders again goes on with the same records.
 *   equals(other: unknown): boolean {
 *     return other instanceof WithWord && other.source === this.source && other.word === this.word
 *   }
 * }
 * ```
 */
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

/** A stream that a component may follow. */
export type FollowedSource<Item> = RecordSource<Item> | ChangingSource<Item>

/** The records that a source yields. */
export type ItemOf<Source, Format extends RecordFormat> = Source extends Stream
  ? RecordAs<Format>
  : Source extends FollowedSource<infer Item>
    ? Item
    : never

/** A synced stream, a mirror or an outbox, as far as `useSyncState` needs it. */
export interface StateSource<State> {
  /** The current state. */
  readonly state: State
  /** Emits the current state, then each further one. */
  readonly state$: { subscribe(observer: (state: State) => void): { unsubscribe(): void } }
}

/** The view on a server, and before the first records. A constant, so that it never causes a render. */
export const EMPTY_VIEW: StreamView<never> = Object.freeze({
  records: Object.freeze([]) as readonly never[],
  status: 'loading',
  error: undefined,
})

const RECORDS_MAX = 1_000
/** Records are collected for about one frame, so that a fast stream does not render per record. */
const RENDER_INTERVAL_MS = 16

/** Reads one stream while it has a subscriber, and keeps the latest records. */
export class StreamStore<Item> {
  readonly #stream: FollowedSource<Item> | undefined
  readonly #query: ReadQuery
  readonly #options: UseStreamOptions
  readonly #recordsMax: number
  readonly #key: string
  #view: StreamView<Item> = EMPTY_VIEW
  #onChange: (() => void) | undefined
  #session: AbortController | undefined

  /** Throws `invalid` for an invalid option. */
  constructor(stream: FollowedSource<Item> | undefined, query: ReadQuery, options: UseStreamOptions) {
    const { recordsMax = RECORDS_MAX } = options
    if (!(recordsMax >= 1)) throw invalid(`recordsMax must be at least 1, not ${recordsMax}`, 'recordsMax')
    this.#stream = stream
    this.#query = query
    this.#options = options
    this.#recordsMax = recordsMax
    this.#key = keyOf(query, options)
  }

  /** Returns whether a store of these arguments would be the same. */
  matches(stream: FollowedSource<Item> | undefined, query: ReadQuery, options: UseStreamOptions): boolean {
    const isSame = stream === this.#stream || this.#stream?.equals?.(stream) === true
    return isSame && keyOf(query, options) === this.#key
  }

  readonly subscribe = (onChange: () => void): (() => void) => {
    this.#onChange = onChange
    if (this.#stream && !this.#session) {
      this.#session = new AbortController()
      void this.#read(this.#stream, this.#session.signal)
    }
    return () => {
      this.#onChange = undefined
      // StrictMode subscribes again at once. Without the same session, records in between could be missed.
      queueMicrotask(() => {
        if (this.#onChange) return
        this.#session?.abort()
        this.#session = undefined
      })
    }
  }

  readonly getView = (): StreamView<Item> => this.#view

  async #read(stream: FollowedSource<Item>, signal: AbortSignal): Promise<void> {
    const records: Item[] = []
    let pending: readonly Item[] = []
    let status: StreamView<Item>['status'] = 'loading'
    let error: Error | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const publish = () => {
      clearTimeout(timer)
      timer = undefined
      if (signal.aborted) return
      this.#view = { records: [...records.slice(-this.#recordsMax), ...pending], status, error }
      this.#onChange?.()
    }
    const add = (items: readonly Item[]) => {
      records.push(...items)
      if (records.length > 2 * this.#recordsMax) records.splice(0, records.length - this.#recordsMax)
      timer ??= setTimeout(publish, RENDER_INTERVAL_MS)
    }
    try {
      if ('changes' in stream) {
        for await (const change of stream.changes(this.#query, { signal })) {
          if (change.isReset) records.length = 0
          pending = change.pending.map(({ item }) => item)
          status = change.isCaughtUp ? 'live' : 'loading'
          add(change.confirmed)
        }
      } else {
        // The session rejects options that it does not know.
        const { recordsMax: _, ...options } = this.#options
        for await (const event of stream.follow(this.#query, { ...options, signal }).events()) {
          if (event.kind === 'heartbeat' && status === 'live') continue
          if (event.kind === 'heartbeat') status = 'live'
          add(event.kind === 'batch' ? event.batch.records : [])
        }
      }
      status = 'ended'
    } catch (failure) {
      status = 'error'
      error = failure as Error
    }
    publish()
  }
}

/** Components pass new but equal objects with every render. */
function keyOf(query: ReadQuery, options: UseStreamOptions): string {
  return JSON.stringify([query, options])
}
