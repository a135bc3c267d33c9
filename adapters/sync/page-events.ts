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
