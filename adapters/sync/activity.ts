import { Observable, Subject } from 'rxjs'
import type { HeadwaterError } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { backOffMs } from '../../src/sync/failures.ts'

/** What mirrors, outboxes and synced basins share: a state for the app, and pauses between attempts. */

/** A value that changes, and an observable of it that begins with the current one. */
export class StateCell<State> {
  readonly states$: Observable<State>
  #current: State
  readonly #changes = new Subject<State>()

  constructor(initial: State) {
    this.#current = initial
    this.states$ = new Observable((subscriber) => {
      subscriber.next(this.#current)
      return this.#changes.subscribe(subscriber)
    })
  }

  get current(): State {
    return this.#current
  }

  set(state: State): void {
    this.#current = state
    this.#changes.next(state)
  }

  /** Sets the last state. */
  end(state: State): void {
    this.set(state)
    this.#changes.complete()
  }
}

/** The state between a failure and the next attempt. */
interface Offline {
  readonly kind: 'offline'
  readonly error: HeadwaterError
  readonly nextAttemptAt: number
}

/** The pauses of one activity: those after failures in succession get longer. */
export class BackOff {
  readonly #clock: Clock
  readonly #random: () => number
  #failures = 0
  #wake: ((isAsked: boolean) => void) | undefined

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
  }

  /** The number of failures in succession. */
  get failures(): number {
    return this.#failures
  }

  /** Begins again with a short pause after the next failure. */
  reset(): void {
    this.#failures = 0
  }

  /** Ends the current pause: if the app asks, or if anything may end it. */
  wake(isAsked: boolean): void {
    this.#wake?.(isAsked)
  }

  /** Shows the state after a failure, and waits until the next attempt. */
  async afterFailure(
    error: HeadwaterError | undefined,
    signal: AbortSignal,
    onState: (state: Offline) => unknown = () => {},
  ): Promise<void> {
    const askedMs = error?.retryAfterMs
    const ms = backOffMs(++this.#failures, this.#random(), askedMs)
    if (error !== undefined) onState({ kind: 'offline', error, nextAttemptAt: this.#clock.now() + ms })
    // A server that says when is left alone until then.
    await this.wait(ms, signal, askedMs === undefined)
  }

  /**
   * Waits for a number of milliseconds, or forever if it is undefined, but no longer than until the signal
   * aborts, the app asks for the next attempt, or something else wakes it if that is allowed.
   */
  wait(ms: number | undefined, signal: AbortSignal, isWakeable: boolean): Promise<void> {
    return pauseUntil(this.#clock, ms, signal, (end) => {
      this.#wake = (isAsked) => {
        if (isAsked || isWakeable) end()
      }
      return () => {
        this.#wake = undefined
      }
    })
  }
}

/**
 * Waits for a number of milliseconds, or forever if it is undefined. The signal, and the callback that
 * `listen` registers, end the pause earlier.
 */
export function pauseUntil(
  clock: Clock,
  ms: number | undefined,
  signal: AbortSignal,
  listen: (end: () => void) => () => void = () => () => {},
): Promise<void> {
  return new Promise((resolve) => {
    const ends: (() => void)[] = []
    const end = () => {
      for (const cancel of ends) cancel()
      resolve()
    }
    if (ms !== undefined) ends.push(clock.schedule(ms, end, { background: true }))
    ends.push(listen(end))
    ends.push(onAbort(signal, end))
  })
}

/**
 * Calls back when a connection may be possible again, or may have been lost unnoticed, and calls `lose` when
 * the network is lost. Returns a function that stops it.
 */
export type WakeUps = (callback: () => void, lose?: () => void) => () => void

/** Outside of browsers there is no document, and the global object has no events. */
type Listener = readonly [target: Partial<EventTarget> | undefined, type: string, callback: () => void]

/** The events of a browser: the network is back or lost, or the page is visible or continues. */
export const browserWakeUps: WakeUps = (callback, lose = () => {}) => {
  const { document } = globalThis
  const onVisibility = () => {
    if (document.visibilityState === 'visible') callback()
  }
  const listeners: readonly Listener[] = [
    [globalThis, 'online', callback],
    [globalThis, 'offline', lose],
    [document, 'visibilitychange', onVisibility],
    [document, 'resume', callback],
  ]
  for (const [target, type, listener] of listeners) target?.addEventListener?.(type, listener)
  return () => {
    for (const [target, type, listener] of listeners) target?.removeEventListener?.(type, listener)
  }
}
