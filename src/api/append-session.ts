import { type Observable, Subject } from 'rxjs'
import {
  type AppendBatch,
  type AppendConditions,
  borrowedBatch,
  type RecordInput,
} from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { type AnySignal, onAnyAbort, type SharedSignal, unlessAborted } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { ByteSemaphore } from '../runtime/quotas.ts'
import { type CallOptions, signalOf } from './call-options.ts'

/** How long a session that lost its permission waits for the acks of appends in flight, in milliseconds. */
const REVOKED_WAIT_MS = 500

/** Conditions and options of an append. */
export interface AppendOptions extends AppendConditions, CallOptions {}

/** An append that a session has accepted. */
export interface AppendTicket {
  /**
   * Resolves when the append is durable. Rejects when it failed, and with `append_discarded` when an earlier
   * append of the session failed: that failure is the `cause`.
   */
  ack(options?: CallOptions): Promise<AppendAck>
}

/** Memory reserved for one append, from its call until it settles. */
export interface Reservation {
  /** Returns the reserved bytes. A second call does nothing. */
  release(): void
}

/** The clock and limits of the methods that a stream builds on its others. */
export interface StreamContext {
  /** Reserves memory for an append. Throws `rate_limited`. */
  readonly reserve: (meteredBytes: number) => Reservation
  readonly clock: Clock
  readonly closing: SharedSignal
}

/** The appends of one session: of those behind a failed one, none is made. */
export interface SessionAppender {
  readonly group: {
    readonly failed: boolean
    /** Discards the appends that follow, with the failure as the cause. */
    fail(error: unknown): void
  }
  /** Encodes a batch or copies its bytes, which are the caller's. Returns what appends it, to be called once. */
  prepare(batch: AppendBatch, reservation: Reservation): PreparedAppend
  release(): void
}

/** Appends a batch. Calls `started` once it is in flight. */
export type PreparedAppend = (started: () => void) => Promise<AppendAck>

/** An append that a session has accepted. Does not keep the batch, and so the memory of its caller. */
interface AcceptedAppend {
  readonly append: PreparedAppend
  readonly reservation: Reservation
  readonly meteredBytes: number
  /** Settles with the appends before it. */
  readonly previous: Promise<unknown>
}

/** Returns the error of the appends of a session that follow a failed one, which is the cause. */
export function discardedError(cause: unknown): HeadwaterError {
  const message = 'an earlier append of this session failed; this one was not made'
  return new HeadwaterError('append_discarded', message, { cause })
}

interface AppendSessionContext {
  readonly appender: SessionAppender
  readonly reserve: (meteredBytes: number) => Reservation
  readonly inFlightBytes: number
  readonly clock: Clock
  /** Ends the session when the engine closes. */
  readonly closing: SharedSignal | undefined
  /** Ends the session with its reason. */
  readonly signal: AbortSignal | undefined
  /** Ends the session within a second; batches that are not in flight by then are not appended. */
  readonly revoked: SharedSignal | undefined
  /** Throws if a batch is not permitted. */
  readonly check: (batch: AppendBatch) => void
  readonly onEnd: () => void
}

/**
 * A pipelined append session: it accepts batches while earlier ones become durable, checks conditions in
 * order and acknowledges in order. The first failure ends it, and nothing after it is appended. If the stream
 * is deleted, the session ends.
 */
export class AppendSession {
  readonly #context: AppendSessionContext
  readonly #inFlight: ByteSemaphore
  readonly #acks = new Subject<AppendAck>()
  readonly #release: () => void
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false
  readonly #failure = new EndFailure()

  /** @internal */
  constructor(context: AppendSessionContext) {
    this.#context = context
    this.#inFlight = new ByteSemaphore(context.inFlightBytes)
    const { closing, signal, revoked, appender, onEnd } = context
    const ignoreEnds = onAnyAbort([closing, signal], (reason) => this.#end(reason))
    const ignoreRevocation = onAnyAbort([revoked], (reason) => this.#revoke(reason))
    this.#release = () => {
      ignoreEnds()
      ignoreRevocation()
      appender.release()
      onEnd()
    }
  }

  /** Acks in order, from the subscription on. Completes when the session is closed, fails when it fails. */
  get acks$(): Observable<AppendAck> {
    return this.#acks.asObservable()
  }

  /**
   * Accepts one batch of 1 to 1,000 records, at most 1 MiB metered. Resolves when the batch is in flight:
   * await it for back-pressure (`limits.sessionInFlightBytes`: 8 MiB by default, 3 MiB over a client).
   *
   * A signal that aborts later does not withdraw the batch.
   *
   * Rejects, and ends the session, with `invalid` for a batch that breaks a rule, and with `rate_limited`
   * when too many bytes wait (`limits.appendWaitingBytes`). Rejects with the failure that has ended the
   * session, with `append_discarded` if that comes while the batch waits, and with `closed` once the session
   * is closed.
   */
  submit(records: RecordInput | readonly RecordInput[], options?: AppendOptions): Promise<AppendTicket> {
    let batch: AppendBatch
    try {
      this.#failure.throwIfPresent()
      if (this.#isClosed) throw this.#endedError()
      batch = borrowedBatch(records, options)
    } catch (error) {
      if (!this.#isClosed) this.#end(error)
      return this.#failure.report(Promise.reject(error))
    }
    const signal = options?.signal
    if (signal?.aborted) return Promise.reject(signal.reason)
    return this.#failure.report(this.submitBatch(batch), signal)
  }

  /** @internal Submits a validated batch, with the memory that was reserved for it, if any. */
  submitBatch(batch: AppendBatch, reserved?: Reservation): Promise<AppendTicket> {
    const { meteredBytes } = batch
    const previous = this.#last
    let reservation = reserved
    let accepted: AcceptedAppend
    try {
      if (this.#isClosed) throw this.#endedError()
      this.#context.check(batch)
      reservation ??= this.#context.reserve(meteredBytes)
      const append = this.#context.appender.prepare(batch, reservation)
      accepted = { append, reservation, meteredBytes, previous }
    } catch (error) {
      reservation?.release()
      if (!this.#isClosed) this.#end(error)
      return Promise.reject(error)
    }
    return new Promise((resolve, refused) => {
      this.#last = new Promise<void>((settled) => {
        this.#inFlight.acquire(meteredBytes, () => {
          const acked = this.#append(accepted, () =>
            resolve({ ack: async (options) => this.#failure.report(acked, signalOf(options)) }),
          )
          acked.catch(refused)
          // A batch that was not sent settles before those in flight; `#last` must not.
          acked.then(
            () => settled(),
            () => previous.then(() => settled()),
          )
        })
      })
    })
  }

  /** Ends the session. Resolves when all its batches are durable. Rejects with the failure that ended it. */
  close(options?: CallOptions): Promise<void> {
    return this.#failure.report(this.#close(), signalOf(options))
  }

  /**
   * Closes the session for `await using`. Rejects as `close` does, unless a call of the session or of one of
   * its tickets has already rejected because of the failure.
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#failure.reportOnce(this.#close())
  }

  async #close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      await this.#last
      this.#release()
      if (this.#failure.first === undefined) this.#acks.complete()
    }
    await this.#last
    this.#failure.throwIfPresent()
  }

  async #append(
    { append, reservation, meteredBytes, previous }: AcceptedAppend,
    started: () => void,
  ): Promise<AppendAck> {
    const { appender } = this.#context
    try {
      if (appender.group.failed) {
        // The append that failed reports the failure first.
        await previous
        throw this.#endedError()
      }
      const ack = await append(started)
      this.#acks.next(ack)
      return ack
    } catch (error) {
      appender.group.fail(error)
      this.#end(error, true)
      throw error
    } finally {
      reservation.release()
      this.#inFlight.release(meteredBytes)
    }
  }

  /** Accepts no more batches. Batches accepted before are still appended. */
  #end(error: unknown, isOfAppend = false): void {
    const hasEnded = this.#isClosed && this.#failure.first !== undefined
    this.#failure.set(error, isOfAppend)
    if (hasEnded) return
    this.#isClosed = true
    void this.#last.then(() => this.#fail())
  }

  /** Appends nothing except the batches in flight, and waits a while for their acks. */
  #revoke(error: unknown): void {
    const { appender, clock } = this.#context
    appender.group.fail(error)
    this.#end(error)
    const cancel = clock.schedule(REVOKED_WAIT_MS, () => this.#fail())
    void this.#last.then(cancel)
  }

  #fail(): void {
    this.#release()
    this.#acks.error(this.#failure.first?.error)
  }

  /** The error of a batch that the session, which has ended, does not append. */
  #endedError(): unknown {
    const { first } = this.#failure
    if (first === undefined) return new HeadwaterError('closed', 'the append session is closed')
    return first.isOfAppend ? discardedError(first.error) : first.error
  }
}

/** The failure that ended a session or a producer, and whether a call has rejected because of it. */
export class EndFailure {
  /** Undefined while there is none. Set by `set` only. */
  first: { readonly error: unknown; readonly isOfAppend: boolean } | undefined
  #isReported = false

  /** The first failure counts, but that of an append precedes what ended the session after it was made. */
  set(error: unknown, isOfAppend = false): void {
    const { first } = this
    if (first && (first.error === error || first.isOfAppend || !isOfAppend)) return
    this.first = { error, isOfAppend }
    this.#isReported = false
  }

  throwIfPresent(): void {
    if (this.first) throw this.first.error
  }

  /** Settles as the result of a call, unless the signal aborts first, and remembers that it rejected. */
  async report<Result>(result: Promise<Result>, signal?: AnySignal): Promise<Result> {
    try {
      return await unlessAborted(signal, result)
    } catch (error) {
      this.#isReported ||= !signal?.aborted
      throw error
    }
  }

  /** Waits for the end. Rejects with the failure unless a call has. */
  reportOnce(end: Promise<void>): Promise<void> {
    return end.catch((error: unknown) => {
      if (this.#isReported) return
      this.#isReported = true
      throw error
    })
  }
}
