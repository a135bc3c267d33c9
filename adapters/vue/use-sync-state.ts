import { type ShallowRef, shallowRef } from 'vue'
import type { StateSource } from '../stream-view/index.ts'
import { whileMounted } from './mounted.ts'

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
