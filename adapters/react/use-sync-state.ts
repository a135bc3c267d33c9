import { useCallback, useSyncExternalStore } from 'react'
import type { StateSource } from '../stream-view/index.ts'

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
