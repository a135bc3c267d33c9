/**
 * Hooks for React that show a stream and the state of a synced one.
 *
 * @packageDocumentation
 */

'use client'

import { useCallback, useState, useSyncExternalStore } from 'react'
import type { ReadQuery, RecordFormat, Stream } from '../../src/index.ts'
import type { RecordAs } from '../../src/model/record.ts'
import {
  type ChangingSource,
  EMPTY_VIEW,
  type FollowedSource,
  type RecordSource,
  type StateSource,
  StreamStore,
  type StreamView,
  type UseStreamOptions,
} from '../stream-view/index.ts'

export type {
  ChangingSource,
  RecordSource,
  StateSource,
  StreamView,
  UseStreamOptions,
} from '../stream-view/index.ts'

/**
 * Follows a stream as `stream.follow(query)` does, and renders the component as records arrive, at most
 * once a frame. Without a stream, and on a server, returns no records and the status `loading`.
 *
 * A synced stream shows its confirmed records, then the pending ones, which have `isPending`.
 *
 * The session is opened when the component is mounted and ends when it is unmounted. Handles, `query` and
 * `options` are compared by value, so they can be created while rendering. If they change, the records are
 * dropped and another session is opened.
 *
 * Throws `invalid` for an invalid `recordsMax`; all other failures are in `error`.
 *
 * ```tsx
 * const { records, status, error } = useStream(hw.basin('my-app').stream('chats/42'), { tailOffset: 50 })
 * ```
 */
export function useStream<Format extends RecordFormat = 'string'>(
  stream: Stream | undefined,
  query?: ReadQuery,
  options?: UseStreamOptions<Format>,
): StreamView<RecordAs<Format>>
export function useStream<Item>(
  stream: ChangingSource<Item> | undefined,
  query?: ReadQuery,
  options?: Pick<UseStreamOptions, 'recordsMax'>,
): StreamView<Item>
export function useStream<Item>(
  stream: RecordSource<Item> | undefined,
  query?: ReadQuery,
  options?: UseStreamOptions<'string'>,
): StreamView<Item>
export function useStream(
  stream: FollowedSource<unknown> | undefined,
  query: ReadQuery = {},
  options: UseStreamOptions = {},
): StreamView<unknown> {
  const [current, replace] = useState(() => new StreamStore(stream, query, options))
  let store = current
  if (!current.matches(stream, query, options)) {
    store = new StreamStore(stream, query, options)
    // While rendering, so that no other stream's records are ever shown.
    replace(store)
  }
  return useSyncExternalStore(store.subscribe, store.getView, () => EMPTY_VIEW)
}

/**
 * Returns the state of a synced stream, a mirror or an outbox, and renders the component when it changes.
 *
 * ```tsx
 * const state = useSyncState(chat)
 * const banner = state.kind === 'offline' ? <p>Offline. Your messages are sent later.</p> : null
 * ```
 */
export function useSyncState<State>(source: StateSource<State>): State {
  const subscribe = useCallback(
    (onChange: () => void) => {
      const subscription = source.state$.subscribe(() => onChange())
      return () => subscription.unsubscribe()
    },
    [source],
  )
  const current = () => source.state
  return useSyncExternalStore(subscribe, current, current)
}
