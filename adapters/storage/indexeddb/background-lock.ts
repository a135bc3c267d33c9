/**
 * Elects one of the sessions on the database for the background work: the holder of a Web Lock. A page that
 * is frozen or enters the back/forward cache releases the lock, because it would block running pages. Without
 * Web Locks, every session is elected. Returns a function that releases the lock for good.
 */
export function contendForBackgroundLock(
  databaseName: string,
  onElected: (isElected: boolean) => void,
): () => void {
  const { locks } = globalThis.navigator ?? {}
  if (locks === undefined) {
    onElected(true)
    return () => {}
  }
  let end: (() => void) | undefined
  const request = () => {
    end ??= holdLock(locks, `headwater ${databaseName} background`, onElected)
  }
  const release = () => {
    end?.()
    end = undefined
  }
  request()
  const stopListening = onPause(release, request)
  return () => {
    stopListening()
    release()
  }
}

/** Requests the lock and holds it until the returned function is called. */
function holdLock(locks: LockManager, name: string, onElected: (isElected: boolean) => void): () => void {
  const request = new AbortController()
  let isHeld = false
  let release: () => void = () => {}
  const hold = () => {
    // The lock can be granted before the abort takes effect.
    if (request.signal.aborted) return
    isHeld = true
    onElected(true)
    return new Promise<void>((resolve) => {
      release = resolve
    })
  }
  locks.request(name, { signal: request.signal }, hold).catch(() => {
    // Pages that must not use locks do the work without.
    if (!request.signal.aborted) onElected(true)
  })
  return () => {
    request.abort()
    release()
    if (isHeld) onElected(false)
    isHeld = false
  }
}

/** Workers receive no event when they are paused with their page. */
function onPause(pause: () => void, resume: () => void): () => void {
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
