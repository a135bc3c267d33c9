/**
 * Calls back when a connection may be possible again, or may have been lost unnoticed. The returned function
 * ends that.
 */
export type WakeUps = (callback: () => void) => () => void

/** The events of a browser: the network is back, or the page is visible or continues. */
export const browserWakeUps: WakeUps = (callback) => {
  const { document } = globalThis
  const onVisibility = () => {
    if (document.visibilityState === 'visible') callback()
  }
  const listeners: [EventTarget | undefined, string, () => void][] = [
    [typeof addEventListener === 'function' ? globalThis : undefined, 'online', callback],
    [document, 'visibilitychange', onVisibility],
    [document, 'resume', callback],
  ]
  for (const [target, type, listener] of listeners) target?.addEventListener(type, listener)
  return () => {
    for (const [target, type, listener] of listeners) target?.removeEventListener(type, listener)
  }
}
