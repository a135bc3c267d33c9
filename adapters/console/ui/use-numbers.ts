import { useEffect, useReducer, useRef } from 'preact/hooks'

/** Requests for numbers that run at once: the page has others. */
const CONCURRENT_MAX = 4
const INTERVAL_MS = 5000

/**
 * Values of the names that are in view, loaded lazily, a few at a time, and again every five seconds while
 * the page is visible.
 */
export function useNumbers<Value>(
  load: ((name: string, before: Value | undefined, signal: AbortSignal) => Promise<Value>) | undefined,
  /** Names that are always in view. */
  shown: readonly string[] = [],
) {
  const [, render] = useReducer((count: number) => count + 1, 0)
  const state = useRef({
    values: new Map<string, Value>(),
    visible: new Set<string>(),
    queue: new Set<string>(),
    running: 0,
    abort: new AbortController(),
  }).current
  const run = () => {
    for (const name of state.queue) {
      if (state.running >= CONCURRENT_MAX) return
      state.queue.delete(name)
      if (!load) continue
      const { signal } = state.abort
      state.running++
      load(name, state.values.get(name), signal)
        .then(
          (value) => state.values.set(name, value),
          () => {},
        )
        .finally(() => {
          state.running--
          if (signal.aborted) return
          run()
          render(undefined)
        })
    }
  }
  const request = (names: Iterable<string>) => {
    for (const name of names) state.queue.add(name)
    run()
  }
  useEffect(() => {
    state.abort = new AbortController()
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && state.queue.size === 0) request(state.visible)
    }, INTERVAL_MS)
    for (const name of shown) state.visible.add(name)
    request(shown)
    return () => {
      clearInterval(timer)
      state.abort.abort()
      state.queue.clear()
    }
  }, [])
  return {
    values: state.values as ReadonlyMap<string, Value>,
    /** Loads the values of these names, too. */
    request,
    /** Tells whether a name is in view. */
    show(name: string, isVisible: boolean) {
      if (!isVisible) state.visible.delete(name)
      else {
        state.visible.add(name)
        if (!state.values.has(name)) request([name])
      }
    },
  }
}
