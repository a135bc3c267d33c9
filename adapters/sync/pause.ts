import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'

/**
 * Waits for a number of milliseconds, or forever if it is undefined. The signal, and the callback that
 * `listen` registers, end the pause earlier.
 */
export function pauseUntil(
  clock: Clock,
  ms: number | undefined,
  signal: AbortSignal,
  listen: (end: () => void) => () => void = () => () => {},
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

/** Resolves to the tail of a stream, or to 0 if the stream does not exist. */
export async function tailOrZero(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}

/**
 * Calls back when a connection may be possible again, or may have been lost unnoticed, and calls `lose` when
 * the network is lost. Returns a function that stops it.
 */
export type WakeUps = (callback: () => void, lose?: () => void) => () => void

/** Outside of browsers there is no document, and the global object has no events. */
type Listener = readonly [target: Partial<EventTarget> | undefined, type: string, callback: () => void]

/** The events of a browser: the network is back or lost, or the page is visible or continues. */
export const browserWakeUps: WakeUps = (callback, lose = () => {}) => {
  const { document } = globalThis
  const onVisibility = () => {
    if (document.visibilityState === 'visible') callback()
  }
  return listen([
    [globalThis, 'online', callback],
    [globalThis, 'offline', lose],
    [document, 'visibilitychange', onVisibility],
    [document, 'resume', callback],
  ])
}

function listen(listeners: readonly Listener[]): () => void {
  for (const [target, type, callback] of listeners) target?.addEventListener?.(type, callback)
  return () => {
    for (const [target, type, callback] of listeners) target?.removeEventListener?.(type, callback)
  }
}
