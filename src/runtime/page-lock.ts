/**
 * Elects one of the pages and workers of an origin: the holder of a Web Lock. A page that is frozen or enters
 * the back/forward cache withdraws until it continues, because it would keep the work from pages that run.
 * Pages that must not use locks are all elected. Calls `onElected` with false after each withdrawal, whether
 * the page was elected or not. Returns a function that withdraws for good.
 */
export function contendForLock(
  locks: LockManager,
  name: string,
  onElected: (isElected: boolean) => void,
): () => void {
  let release: (() => void) | undefined
  const contend = () => {
    release ??= holdLock(locks, name, () => onElected(true))
  }
  const withdraw = () => {
    if (release === undefined) return
    release()
    release = undefined
    onElected(false)
  }
  contend()
  const ignorePauses = onPause(withdraw, contend)
  return () => {
    ignorePauses()
    withdraw()
  }
}

/** Requests a lock and holds it until the returned function is called. */
function holdLock(locks: LockManager, name: string, onHeld: () => void): () => void {
  const request = new AbortController()
  let release: () => void = () => {}
  const hold = () => {
    // The lock can be granted before the abort takes effect.
    if (request.signal.aborted) return
    onHeld()
    return new Promise<void>((resolve) => {
      release = resolve
    })
  }
  locks.request(name, { signal: request.signal }, hold).catch(() => {
    if (!request.signal.aborted) onHeld()
  })
  return () => {
    request.abort()
    release()
  }
}

/**
 * Calls back before the page is frozen, put into the back/forward cache or left, and when it continues.
 * Workers receive no event when they are paused with their page.
 */
function onPause(pause: () => void, resume: () => void): () => void {
  const { document } = globalThis
  const listeners: readonly (readonly [Partial<EventTarget> | undefined, string, () => void])[] = [
    [document, 'freeze', pause],
    [document, 'resume', resume],
    // Not every browser fires `freeze` for pages in the back/forward cache.
    [globalThis, 'pagehide', pause],
    [globalThis, 'pageshow', resume],
  ]
  for (const [target, type, callback] of listeners) target?.addEventListener?.(type, callback)
  return () => {
    for (const [target, type, callback] of listeners) target?.removeEventListener?.(type, callback)
  }
}
