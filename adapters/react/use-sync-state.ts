import { useCallback, useSyncExternalStore } from 'react'

/** What {@link useSyncState} needs of a synced stream, a mirror or an outbox. */
export interface StateSource<State> {
  /** The current state. */
  readonly state: State
  /** Emits the current state, then each further one. */
  readonly state$: { subscribe(observer: (state: State) => void): { unsubscribe(): void } }
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
