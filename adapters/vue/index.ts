/**
 * Composables for Vue that show a stream and the state of a synced one.
 *
 * @packageDocumentation
 */

import {
  getCurrentInstance,
  type MaybeRefOrGetter,
  onMounted,
  onScopeDispose,
  type ShallowRef,
  shallowRef,
  toRaw,
  toValue,
  watch,
} from 'vue'
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
 * Follows a stream as `stream.follow(query)` does, and returns a ref of its latest records, which changes at
 * most once a frame. Without a stream, and on a server, the ref has no records and the status `loading`.
 *
 * A synced stream shows its confirmed records, then the pending ones, which have `isPending`.
 *
 * The session is opened when the component is mounted and ends when it is unmounted. `stream` and `query` may
 * be refs or getters: if their value changes, the records are dropped and another session is opened. Handles
 * and queries are compared by value.
 *
 * Throws `invalid` for an invalid `recordsMax`; all other failures are in `error`.
 *
 * ```ts
 * import { useStream } from 'headwater/vue'
 *
 * const view = useStream(() => hw.basin('my-app').stream('chats/42'), { tailOffset: 50 })
 * ```
 */
export function useStream<
  Source extends FollowedSource<unknown> | undefined,
  Format extends RecordFormat = 'string',
>(
  stream: MaybeRefOrGetter<Source>,
  query: MaybeRefOrGetter<ReadQuery> = {},
  options: UseStreamOptions<Format> = {},
): Readonly<ShallowRef<StreamView<ItemOf<NonNullable<Source>, Format>>>> {
  type Item = ItemOf<NonNullable<Source>, Format>
  // A reactive proxy of a handle would lack its private members. Spreading the query observes its members.
  const given = () =>
    [toRaw(toValue(stream)) as FollowedSource<Item> | undefined, { ...toValue(query) }] as const
  let store = new StreamStore(...given(), options)
  const view = shallowRef<StreamView<Item>>(EMPTY_VIEW)
  whileMounted(() => {
    let end: (() => void) | undefined
    const stop = watch(
      given,
      ([source, query]) => {
        if (end && store.matches(source, query, options)) return
        end?.()
        const next = new StreamStore(source, query, options)
        store = next
        view.value = EMPTY_VIEW
        end = next.subscribe(() => {
          view.value = next.getView()
        })
      },
      { immediate: true },
    )
    return () => {
      stop()
      end?.()
    }
  })
  return view
}

/**
 * Returns a ref of the state of a synced stream, a mirror or an outbox.
 *
 * ```ts
 * import { useSyncState } from 'headwater/vue'
 *
 * const state = useSyncState(chat) // in the template: v-if="state.kind === 'offline'"
 * ```
 */
export function useSyncState<State>(source: StateSource<State>): Readonly<ShallowRef<State>> {
  const state = shallowRef(source.state) as ShallowRef<State>
  whileMounted(() => {
    const subscription = source.state$.subscribe((current) => {
      state.value = current
    })
    return () => subscription.unsubscribe()
  })
  return state
}

/**
 * Starts work when the component is mounted, so that a server starts none, and stops it with the component.
 * Outside of a component, starts at once and stops with the effect scope.
 */
function whileMounted(start: () => () => void): void {
  let stop: (() => void) | undefined
  const begin = () => {
    stop = start()
  }
  if (getCurrentInstance()) onMounted(begin)
  else begin()
  onScopeDispose(() => stop?.())
}
