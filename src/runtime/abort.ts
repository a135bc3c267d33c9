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

interface Registry {
  readonly callbacks: Set<() => void>
  /** The listener that all callbacks share. */
  readonly listener: () => void
}

const registries = new WeakMap<AnySignal, Registry>()

/**
 * Calls back once when the signal aborts, or synchronously if it already has. The returned function cancels.
 * All callbacks of a signal share one event listener, which is removed with the last of them.
 */
export function onAbort(signal: AnySignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const { callbacks } = registries.get(signal) ?? register(signal)
  // A function of its own, because the same callback may be registered twice.
  const entry = () => callback()
  callbacks.add(entry)
  return () => {
    if (callbacks.delete(entry) && callbacks.size === 0) unregister(signal)
  }
}

/** Calls back with the reason of each signal that aborts or has aborted. The returned function cancels. */
export function onAnyAbort(
  signals: readonly (AnySignal | undefined)[],
  callback: (reason: unknown) => void,
): () => void {
  const cancels = signals.map((signal) => signal && onAbort(signal, () => callback(signal.reason)))
  return () => {
    for (const cancel of cancels) cancel?.()
  }
}

function register(signal: AnySignal): Registry {
  const callbacks = new Set<() => void>()
  const listener = () => {
    unregister(signal)
    for (const callback of callbacks) callback()
    callbacks.clear()
  }
  const registry = { callbacks, listener }
  registries.set(signal, registry)
  signal.addEventListener('abort', listener, { once: true })
  return registry
}

function unregister(signal: AnySignal): void {
  const registry = registries.get(signal)
  if (registry !== undefined) signal.removeEventListener('abort', registry.listener)
  registries.delete(signal)
}

/**
 * Settles as `work` does, or rejects with the signal's reason if the signal aborts first. `discard` then
 * receives the result of the work, should it still succeed.
 */
export function unlessAborted<Result>(
  signal: AnySignal | undefined,
  work: Promise<Result>,
  discard?: (late: Result) => void,
): Promise<Result> {
  if (signal === undefined) return work
  const settled = new Promise<Result>((resolve, reject) => {
    const cancel = onAbort(signal, () => reject(signal.reason))
    // Not `finally`, which makes three promises more.
    work.then(
      (result) => {
        cancel()
        resolve(result)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
  if (discard !== undefined) settled.catch(() => work.then(discard).catch(() => {}))
  return settled
}
