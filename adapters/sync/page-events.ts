/**
 * Calls back when a connection may be possible again, or may have been lost unnoticed, and calls `lose` when
 * the network is lost. Returns a function that stops it.
 */
export type WakeUps = (callback: () => void, lose?: () => void) => () => void

type Listener = readonly [target: EventTarget | undefined, type: string, callback: () => void]

/** The events of a browser: the network is back or lost, or the page is visible or continues. */
export const browserWakeUps: WakeUps = (callback, lose = () => {}) => {
  const { document } = globalThis
  const onVisibility = () => {
    if (document.visibilityState === 'visible') callback()
  }
  return listen([
    [globalWithEvents(), 'online', callback],
    [globalWithEvents(), 'offline', lose],
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
    [globalWithEvents(), 'pagehide', pause],
    [globalWithEvents(), 'pageshow', resume],
  ])
}

/** A window or a worker; undefined where there are no such events. */
function globalWithEvents(): EventTarget | undefined {
  return typeof addEventListener === 'function' ? globalThis : undefined
}

function listen(listeners: readonly Listener[]): () => void {
  for (const [target, type, callback] of listeners) target?.addEventListener(type, callback)
  return () => {
    for (const [target, type, callback] of listeners) target?.removeEventListener(type, callback)
  }
}
