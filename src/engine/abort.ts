const registries = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back once when the signal aborts, at once when it has; the returned function cancels. However many wait for one signal, it has a single listener, and
 * none when nobody waits.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const callbacks = registries.get(signal) ?? register(signal)
  const own = () => callback()
  callbacks.add(own)
  return () => {
    if (callbacks.delete(own) && callbacks.size === 0) unregister(signal)
  }
}

const listeners = new WeakMap<AbortSignal, () => void>()

function register(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>()
  const listener = () => {
    unregister(signal)
    for (const callback of callbacks) callback()
    callbacks.clear()
  }
  registries.set(signal, callbacks)
  listeners.set(signal, listener)
  signal.addEventListener('abort', listener, { once: true })
  return callbacks
}

function unregister(signal: AbortSignal): void {
  const listener = listeners.get(signal)
  if (listener !== undefined) signal.removeEventListener('abort', listener)
  listeners.delete(signal)
  registries.delete(signal)
}

/** Settles as `work` does, or rejects with the signal's reason when it aborts first. */
export function unlessAborted<Result>(
  signal: AbortSignal | undefined,
  work: Promise<Result>,
): Promise<Result> {
  if (signal === undefined) return work
  if (signal.aborted) {
    work.catch(() => {})
    return Promise.reject(signal.reason)
  }
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, () => reject(signal.reason))
    work.then(resolve, reject).finally(ignore)
  })
}
