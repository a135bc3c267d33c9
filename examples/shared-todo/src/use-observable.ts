import { useCallback, useSyncExternalStore } from 'react'
import type { Observable } from 'rxjs'

/** Returns the current value, and renders the component when the observable emits. */
export function useObservable<Value>(changes: Observable<unknown>, current: () => Value): Value {
  const subscribe = useCallback(
    (onChange: () => void) => {
      // Errors are shown by the app.
      const subscription = changes.subscribe({ next: onChange, error: onChange })
      return () => subscription.unsubscribe()
    },
    [changes],
  )
  return useSyncExternalStore(subscribe, current)
}
