import { getCurrentInstance, onMounted, onScopeDispose } from 'vue'

/**
 * Starts work when the component is mounted, so that a server starts none, and stops it with the component.
 * Outside of a component, starts at once and stops with the effect scope.
 */
export function whileMounted(start: () => () => void): void {
  let stop: (() => void) | undefined
  const begin = () => {
    stop = start()
  }
  if (getCurrentInstance()) onMounted(begin)
  else begin()
  onScopeDispose(() => stop?.())
}
