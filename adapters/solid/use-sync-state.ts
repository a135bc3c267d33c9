import { type Accessor, createEffect, createSignal, onCleanup } from 'solid-js'
import type { StateSource } from '../stream-view/index.ts'

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
