import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { storageClosed } from './errors.ts'

/** The calls of one session: rejects them once it is closed, and lets `close` wait for those in flight. */
export class SessionCalls {
  readonly #inFlight = new Set<Promise<unknown>>()
  #closing: Promise<void> | undefined

  /** Whether `close` was called. */
  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** Runs a call at once, unless the session is closed. `work` must reject instead of throwing. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) return Promise.reject(storageClosed())
    const call = work()
    const forget = () => void this.#inFlight.delete(call)
    this.#inFlight.add(call)
    call.then(forget, forget)
    return call
  }

  /** Resolves when the calls that are in flight now have settled. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inFlight)
  }

  /** Rejects later calls, waits for those in flight, runs `release`. A second call settles as the first. */
  close(release: () => MaybePromise<unknown>): Promise<void> {
    this.#closing ??= this.settled().then(async () => void (await release()))
    return this.#closing
  }
}

/**
 * Tells an engine about changed logs, for storages whose sessions share memory. Each notification has a
 * microtask of its own, so that it is not within a call of the engine, and a callback that throws does not
 * suppress the others. Changes of a log until then are one notification.
 */
export class ChangeNotifier {
  readonly #onLogChanged: (logId: string) => void
  readonly #pending = new Set<string>()

  constructor(onLogChanged: (logId: string) => void) {
    this.#onLogChanged = onLogChanged
  }

  /** Schedules a notification. */
  notify(logId: string): void {
    if (this.#pending.has(logId)) return
    this.#pending.add(logId)
    queueMicrotask(() => {
      if (this.#pending.delete(logId)) this.#onLogChanged(logId)
    })
  }

  /** Discards the notifications that are scheduled. */
  clear(): void {
    this.#pending.clear()
  }
}
