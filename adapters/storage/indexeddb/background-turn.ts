/**
 * One of the sessions on the database has the turn: the holder of a Web Lock. A page that is frozen or put away lets go of it, for it would keep
 * it from those that run. Without Web Locks every session has the turn. Returns how to give it up for good.
 */
export function takeTurns(databaseName: string, onTurn: (isOurs: boolean) => void): () => void {
  const { locks } = globalThis.navigator ?? {}
  if (locks === undefined) {
    onTurn(true)
    return () => {}
  }
  let letGo: (() => void) | undefined
  const ask = () => {
    letGo ??= holdLock(locks, `headwater ${databaseName} background`, onTurn)
  }
  const give = () => {
    letGo?.()
    letGo = undefined
  }
  ask()
  const stopListening = whenPaused(give, ask)
  return () => {
    stopListening()
    give()
  }
}

/** Asks for the lock and holds it until the returned function is called. */
function holdLock(locks: LockManager, name: string, onTurn: (isOurs: boolean) => void): () => void {
  const waiting = new AbortController()
  let isHeld = false
  let release: () => void = () => {}
  const hold = () => {
    // It may have been granted before it was known that it is not wanted any more.
    if (waiting.signal.aborted) return
    isHeld = true
    onTurn(true)
    return new Promise<void>((resolve) => {
      release = resolve
    })
  }
  locks.request(name, { signal: waiting.signal }, hold).catch(() => {
    // Where a page may have no locks, it does the work without.
    if (!waiting.signal.aborted) onTurn(true)
  })
  return () => {
    waiting.abort()
    release()
    if (isHeld) onTurn(false)
    isHeld = false
  }
}

/** Workers are not told when they are paused with their page. */
function whenPaused(pause: () => void, resume: () => void): () => void {
  if (typeof document === 'undefined') return () => {}
  const listeners = [
    [document, 'freeze', pause],
    [document, 'resume', resume],
    // Where a page is kept for when the user comes back, only some browsers tell of freezing.
    [window, 'pagehide', pause],
    [window, 'pageshow', resume],
  ] as const
  for (const [target, type, listener] of listeners) target.addEventListener(type, listener)
  return () => {
    for (const [target, type, listener] of listeners) target.removeEventListener(type, listener)
  }
}
