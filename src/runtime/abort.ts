/**
 * An abort signal that all callers may share. An `AbortSignal` cannot be shared: workerd ties it to the
 * request that created it, and forbids creating one outside of a request.
 */
export class SharedSignal extends EventTarget {
  aborted = false
  reason: unknown
  #standard: AbortSignal | undefined

  /** Aborts once; later calls do nothing. */
  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.dispatchEvent(new Event('abort'))
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  /** The same as an `AbortSignal`, for users of the library. */
  asAbortSignal(): AbortSignal {
    if (this.#standard === undefined) {
      const controller = new AbortController()
      this.#standard = controller.signal
      onAbort(this, () => controller.abort(this.reason))
    }
    return this.#standard
  }
}

export type AnySignal = AbortSignal | SharedSignal

const registries = new WeakMap<AnySignal, Set<() => void>>()

/**
 * Calls back once when the signal aborts, or synchronously if it already has. The returned function cancels.
 * All callbacks of a signal share one event listener, which is removed with the last of them.
 */
export function onAbort(signal: AnySignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const callbacks = registries.get(signal) ?? register(signal)
  // A function of its own, because the same callback may be registered twice.
  const entry = () => callback()
  callbacks.add(entry)
  return () => {
    if (callbacks.delete(entry) && callbacks.size === 0) unregister(signal)
  }
}

const listeners = new WeakMap<AnySignal, () => void>()

function register(signal: AnySignal): Set<() => void> {
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

function unregister(signal: AnySignal): void {
  const listener = listeners.get(signal)
  if (listener !== undefined) signal.removeEventListener('abort', listener)
  listeners.delete(signal)
  registries.delete(signal)
}

/** Settles as `work` does, or rejects with the signal's reason if the signal aborts first. */
export function unlessAborted<Result>(signal: AnySignal | undefined, work: Promise<Result>): Promise<Result> {
  if (signal === undefined) return work
  if (signal.aborted) {
    work.catch(() => {})
    return Promise.reject(signal.reason)
  }
  return new Promise((resolve, reject) => {
    const cancel = onAbort(signal, () => reject(signal.reason))
    work.then(resolve, reject).finally(cancel)
  })
}
