import type { ReadQuery } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import type { FollowedSource, StreamView, UseStreamOptions } from './types.ts'

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
