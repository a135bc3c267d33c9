import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'

/**
 * Waits for a number of milliseconds, or without an end if it is undefined, until the signal aborts or what
 * `listen` registers ends it.
 */
export function pause(
  clock: Clock,
  ms: number | undefined,
  signal: AbortSignal,
  listen: (end: () => void) => () => void,
): Promise<void> {
  return new Promise((resolve) => {
    const ends: (() => void)[] = []
    const end = () => {
      for (const cancel of ends) cancel()
      resolve()
    }
    if (ms !== undefined) ends.push(clock.schedule(ms, end, { background: true }))
    ends.push(listen(end))
    ends.push(onAbort(signal, end))
  })
}
