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

/**
 * Calls back before the page is frozen, put into the back/forward cache or left, and when it continues.
 * Workers receive no event when they are paused with their page. Returns a function that stops it.
 */
export function onBrowserPause(pause: () => void, resume: () => void): () => void {
  const { document } = globalThis
  return listen([
    [document, 'freeze', pause],
    [document, 'resume', resume],
    // Not every browser fires `freeze` for pages in the back/forward cache.
    [globalThis, 'pagehide', pause],
    [globalThis, 'pageshow', resume],
  ])
}

function listen(listeners: readonly Listener[]): () => void {
  for (const [target, type, callback] of listeners) target?.addEventListener?.(type, callback)
  return () => {
    for (const [target, type, callback] of listeners) target?.removeEventListener?.(type, callback)
  }
}
