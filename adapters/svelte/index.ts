/**
 * A store for Svelte that shows a stream.
 *
 * @packageDocumentation
 */

import type { ReadQuery, RecordFormat } from '../../src/index.ts'
import {
  EMPTY_VIEW,
  type FollowedSource,
  type ItemOf,
  StreamStore,
  type StreamView,
  type UseStreamOptions,
} from '../stream-view/index.ts'

export type {
  ChangingSource,
  FollowedSource,
  ItemOf,
  RecordSource,
  StreamView,
  UseStreamOptions,
} from '../stream-view/index.ts'

/**
 * A readable store of Svelte: `$chat` in a component is its value.
 *
 * ```ts
 * const messages = streamStore(stream, { tailOffset: 50 })
 * const stop = messages.subscribe(({ status, records }) => console.log(status, records.length))
 * ```
 */
export interface StreamViewStore<Item> {
  /** Calls `run` with the current view, and with each further one. Returns a function that ends this. */
  subscribe(run: (view: StreamView<Item>) => void): () => void
}

/**
 * Follows a stream as `stream.follow(query)` does. Returns a store of its latest records, which changes at
 * most once a frame. Without a stream, the store has no records and the status `loading`.
 *
 * A synced stream shows its confirmed records, then the pending ones, which have `isPending`.
 *
 * The session is opened while the store has subscribers: one for all components that use it. A component that
 * is rendered on a server opens none.
 *
 * Throws `invalid` for an invalid `recordsMax`; all other failures are in `error`.
 *
 * ```ts
 * const view = streamStore(hw.basin('my-app').stream('chats/42'), { tailOffset: 50 }) // `$view.records`
 * ```
 */
export function streamStore<
  Source extends FollowedSource<unknown> | undefined,
  Format extends RecordFormat = 'string',
>(
  stream: Source,
  query: ReadQuery = {},
  options: UseStreamOptions<Format> = {},
): StreamViewStore<ItemOf<NonNullable<Source>, Format>> {
  type Item = ItemOf<NonNullable<Source>, Format>
  const store = new StreamStore(stream as FollowedSource<Item> | undefined, query, options)
  const subscribers = new Set<(view: StreamView<Item>) => void>()
  let view: StreamView<Item> = EMPTY_VIEW
  let end: (() => void) | undefined

  function open(): void {
    if (subscribers.size === 0 || end) return
    end = store.subscribe(() => {
      view = store.getView()
      for (const run of subscribers) run(view)
    })
  }

  return {
    subscribe(run) {
      // A function of its own, so that the same one can subscribe twice.
      const subscriber = (current: StreamView<Item>) => run(current)
      subscribers.add(subscriber)
      run(view)
      // Rendering on a server unsubscribes in the same turn.
      queueMicrotask(open)
      return () => {
        subscribers.delete(subscriber)
        if (subscribers.size > 0) return
        end?.()
        end = undefined
      }
    },
  }
}
