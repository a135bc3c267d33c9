/**
 * Gives one of the sessions on the database the background turn: the holder of a Web Lock. A page that is
 * frozen or enters the back/forward cache releases the lock, because it would block running pages. Without
 * Web Locks, every session has the turn. Returns a function that releases the lock for good.
 */
export function contendForBackgroundLock(
  databaseName: string,
  onTurn: (isOurs: boolean) => void,
): () => void {
  const { locks } = globalThis.navigator ?? {}
  if (locks === undefined) {
    onTurn(true)
    return () => {}
  }
  let end: (() => void) | undefined
  const request = () => {
    end ??= holdLock(locks, `headwater ${databaseName} background`, onTurn)
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
function holdLock(locks: LockManager, name: string, onTurn: (isOurs: boolean) => void): () => void {
  const request = new AbortController()
  let isHeld = false
  let release: () => void = () => {}
  const hold = () => {
    // The lock can be granted before the abort takes effect.
    if (request.signal.aborted) return
    isHeld = true
    onTurn(true)
    return new Promise<void>((resolve) => {
      release = resolve
    })
  }
  locks.request(name, { signal: request.signal }, hold).catch(() => {
    // Pages that must not use locks do the work without.
    if (!request.signal.aborted) onTurn(true)
  })
  return () => {
    request.abort()
    release()
    if (isHeld) onTurn(false)
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
