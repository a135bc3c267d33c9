/**
 * Functions for Solid that show a stream and the state of a synced one.
 *
 * @packageDocumentation
 */

import { type Accessor, createEffect, createMemo, createSignal, onCleanup } from 'solid-js'
import type { ReadQuery, RecordFormat } from '../../src/index.ts'
import {
  EMPTY_VIEW,
  type FollowedSource,
  type ItemOf,
  type StateSource,
  StreamStore,
  type StreamView,
  type UseStreamOptions,
} from '../stream-view/index.ts'

export type {
  ChangingSource,
  FollowedSource,
  ItemOf,
  RecordSource,
  StateSource,
  StreamView,
  UseStreamOptions,
} from '../stream-view/index.ts'

/**
 * Follows a stream as `stream.follow(query)` does, and returns a signal of its latest records, which changes
 * at most once a frame. Without a stream, and on a server, it has no records and the status `loading`.
 *
 * A synced stream shows its confirmed records, then the pending ones, which have `isPending`.
 *
 * The session is opened after the component has rendered and ends with it. If the value of `stream` or
 * `query` changes, the records are dropped and another session is opened. Handles and queries are compared by
 * value.
 *
 * Throws `invalid` for an invalid `recordsMax`; all other failures are in `error`.
 *
 * ```ts
 * import { useStream } from 'headwater/solid'
 *
 * const view = useStream(() => hw.basin('my-app').stream('chats/42'), () => ({ tailOffset: 50 }))
 * ```
 */
export function useStream<
  Source extends FollowedSource<unknown> | undefined,
  Format extends RecordFormat = 'string',
>(
  stream: Accessor<Source>,
  query: Accessor<ReadQuery> = () => ({}),
  options: UseStreamOptions<Format> = {},
): Accessor<StreamView<ItemOf<NonNullable<Source>, Format>>> {
  type Item = ItemOf<NonNullable<Source>, Format>
  const [view, setView] = createSignal<StreamView<Item>>(EMPTY_VIEW)
  const store = createMemo<StreamStore<Item>>((previous) => {
    const given = [stream() as FollowedSource<Item> | undefined, query(), options] as const
    return previous?.matches(...given) ? previous : new StreamStore(...given)
  })
  createEffect(() => {
    const current = store()
    setView(EMPTY_VIEW)
    onCleanup(current.subscribe(() => setView(current.getView())))
  })
  return view
}

/**
 * Returns a signal of the state of a synced stream, a mirror or an outbox.
 *
 * ```ts
 * import { useSyncState } from 'headwater/solid'
 *
 * const state = useSyncState(chat)
 * const isOffline = () => state().kind === 'offline'
 * ```
 */
export function useSyncState<State>(source: StateSource<State>): Accessor<State> {
  const [state, setState] = createSignal(source.state)
  createEffect(() => {
    const subscription = source.state$.subscribe((current) => setState(() => current))
    onCleanup(() => subscription.unsubscribe())
  })
  return state
}
