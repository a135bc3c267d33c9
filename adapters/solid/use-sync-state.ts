import { type Accessor, createEffect, createSignal, onCleanup } from 'solid-js'
import type { StateSource } from '../stream-view/index.ts'

/**
 * Returns a signal of the state of a synced stream, a mirror or an outbox.
 *
 * ```tsx
 * const state = useSyncState(chat)
 * const banner = <Show when={state().kind === 'offline'}>Offline. Your messages are sent later.</Show>
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
