/**
 * Calls back before the page is frozen, put into the back/forward cache or left, and when it continues.
 * Workers receive no event when they are paused with their page. The returned function ends that.
 */
export function onBrowserPause(pause: () => void, resume: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  const listeners = [
    [document, 'freeze', pause],
    [document, 'resume', resume],
    // Not every browser fires `freeze` for pages in the back/forward cache.
    [window, 'pagehide', pause],
    [window, 'pageshow', resume],
  ] as const
  for (const [target, type, listener] of listeners) target.addEventListener(type, listener)
  return () => {
    for (const [target, type, listener] of listeners) target.removeEventListener(type, listener)
  }
}
