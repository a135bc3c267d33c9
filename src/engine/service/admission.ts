import { invalid } from '../../model/errors.ts'
import { ByteSemaphore, RejectingQuota } from '../../runtime/quotas.ts'
import { closedError } from '../errors.ts'
import type { EngineLimits } from '../options.ts'

/** Decides which appends and sessions are accepted, delayed or rejected. Closing waits for the accepted. */
export class Admission {
  /** Every append that has not settled, in flight or not. */
  readonly #pendingBytes: RejectingQuota
  readonly #inFlightBytes: ByteSemaphore
  readonly #appendBytesMax: number
  readonly #sessions: RejectingQuota
  readonly #calls = new Set<Promise<unknown>>()
  #isClosed = false

  constructor({ appendInFlightBytes, appendWaitingBytes, openSessions }: EngineLimits) {
    this.#pendingBytes = new RejectingQuota(
      'limits.appendWaitingBytes',
      appendWaitingBytes,
      appendInFlightBytes,
    )
    this.#inFlightBytes = new ByteSemaphore(appendInFlightBytes)
    this.#appendBytesMax = appendInFlightBytes
    this.#sessions = new RejectingQuota('limits.openSessions', openSessions)
  }

  get openSessions(): number {
    return this.#sessions.used
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes.used
  }

  /** Metered bytes of the appends that are not in flight yet. */
  get waitingBytes(): number {
    return this.#pendingBytes.used - this.#inFlightBytes.used
  }

  get waitingAppends(): number {
    return this.#inFlightBytes.waiting
  }

  /**
   * Throws `rate_limited` when too many bytes wait, `invalid` for an append that could never be in flight,
   * and `closed` after `close`. Must precede anything asynchronous: an append that waits occupies memory, and
   * `close` waits for it.
   */
  reserve(meteredBytes: number): AppendReservation {
    if (this.#isClosed) throw closedError()
    if (meteredBytes > this.#appendBytesMax) {
      const limit = `\`limits.appendInFlightBytes\` is ${this.#appendBytesMax}`
      throw invalid(`${limit}; the append has a metered size of ${meteredBytes} bytes`, 'records')
    }
    this.#pendingBytes.acquire(meteredBytes)
    return new AppendReservation(this.#pendingBytes, this.#inFlightBytes, meteredBytes)
  }

  /** Adds a call that `close` waits for, and returns it. */
  track<Result>(call: Promise<Result>): Promise<Result> {
    const done = () => this.#calls.delete(call)
    this.#calls.add(call)
    call.then(done, done)
    return call
  }

  /** Admits no more appends. Resolves when they and all other calls have settled. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pendingBytes.idle()
    await Promise.allSettled(this.#calls)
  }

  /** Throws `rate_limited` when too many sessions are open. The returned function ends the session, once. */
  openSession(): () => void {
    this.#sessions.acquire(1)
    let isOpen = true
    return () => {
      if (isOpen) this.#sessions.release(1)
      isOpen = false
    }
  }
}

/** Memory reserved for one append, from its call until it settles. */
export class AppendReservation {
  readonly #pending: RejectingQuota
  readonly #inFlight: ByteSemaphore
  readonly #bytes: number
  #state: 'reserved' | 'in flight' | 'released' = 'reserved'

  constructor(pending: RejectingQuota, inFlight: ByteSemaphore, bytes: number) {
    this.#pending = pending
    this.#inFlight = inFlight
    this.#bytes = bytes
  }

  /** Calls `run` when the bytes are in flight: now, or after appends that came earlier have settled. */
  start(run: () => void): void {
    if (this.#state === 'in flight') {
      run()
      return
    }
    this.#inFlight.acquire(this.#bytes, () => {
      if (this.#state === 'released') {
        this.#inFlight.release(this.#bytes)
        return
      }
      this.#state = 'in flight'
      run()
    })
  }

  /** Returns the reserved bytes. A second call does nothing. */
  release(): void {
    const state = this.#state
    if (state === 'released') return
    this.#state = 'released'
    this.#pending.release(this.#bytes)
    if (state === 'in flight') this.#inFlight.release(this.#bytes)
  }
}
