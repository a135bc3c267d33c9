import type { Observable } from 'rxjs'
import {
  type AppendBatch,
  type AppendConditions,
  appendBatch,
  ownBytes,
  type RecordInput,
} from '../../model/append-input.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import { onAnyAbort, type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { ByteSemaphore } from '../../runtime/quota.ts'
import { discardedError } from '../log/errors.ts'
import type { Reservation } from '../service/admission.ts'
import type { SessionAppender } from '../service/append-service.ts'
import { type CallOptions, signalOf } from './call-options.ts'
import { Multicast } from './observables.ts'

/** How long a session that lost its permission waits for the acks of appends in flight, in milliseconds. */
const REVOKED_WAIT_MS = 500

/** Conditions and options of an append. */
export interface AppendOptions extends AppendConditions, CallOptions {}

/** An append that a session has accepted. */
export interface AppendTicket {
  /** Resolves when the append is durable. Rejects when it or an earlier append of the session failed. */
  ack(options?: CallOptions): Promise<AppendAck>
}

export interface AppendSessionContext {
  readonly appender: SessionAppender
  readonly reserve: (meteredBytes: number) => Reservation
  readonly inFlightBytes: number
  readonly clock: Clock
  readonly closing: SharedSignal
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
  readonly #acks = new Multicast<AppendAck>()
  readonly #release: () => void
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false
  #failure: { readonly error: unknown } | undefined

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

  /**
   * Acks in order, from the subscription on. Completes when the session is closed, fails when the session
   * fails.
   */
  get acks$(): Observable<AppendAck> {
    return this.#acks.observable
  }

  /**
   * Accepts one batch of 1 to 1,000 records, at most 1 MiB metered. Resolves when the batch is in flight:
   * await it for back-pressure (`limits.sessionInFlightBytes`, 8 MiB by default).
   *
   * A signal that aborts later does not withdraw the batch.
   *
   * Rejects, and ends the session, with `invalid` for a batch that breaks a rule, and with `rate_limited`
   * when too many bytes wait (`limits.appendWaitingBytes`). Rejects with the failure that ended the session,
   * or `unavailable` once it is closed.
   */
  submit(records: RecordInput | readonly RecordInput[], options?: AppendOptions): Promise<AppendTicket> {
    if (this.#isClosed) return Promise.reject(this.#endedError())
    let batch: AppendBatch
    try {
      batch = appendBatch(records, options)
    } catch (error) {
      this.#end(error)
      return Promise.reject(error)
    }
    const signal = options?.signal
    if (signal?.aborted) return Promise.reject(signal.reason)
    return unlessAborted(signal, this.submitBatch(batch))
  }

  /**
   * @internal Submits a validated batch, with the memory that was reserved for it, if any. Copies the byte
   * arrays of the batch unless they are encoded when it returns.
   */
  submitBatch(batch: AppendBatch, reserved?: Reservation): Promise<AppendTicket> {
    if (this.#isClosed) {
      reserved?.release()
      return Promise.reject(this.#endedError())
    }
    let reservation = reserved
    try {
      // Lines contain no commands.
      if (batch.lines === undefined) this.#context.check(batch)
      reservation ??= this.#context.reserve(batch.meteredBytes)
    } catch (error) {
      reservation?.release()
      this.#end(error)
      return Promise.reject(error)
    }
    const previous = this.#last
    const held = reservation
    return new Promise((accepted, refused) => {
      this.#last = new Promise<void>((settled) => {
        let isAppended = false
        this.#inFlight.acquire(batch.meteredBytes, () => {
          isAppended = true
          const acked = this.#append(batch, held, previous, () =>
            accepted({ ack: async (options) => unlessAborted(signalOf(options), acked) }),
          )
          acked.catch(refused)
          // A batch that was not sent settles before those in flight; `#last` must not.
          acked.then(
            () => settled(),
            () => previous.then(() => settled()),
          )
        })
        if (!isAppended) ownBytes(batch)
      })
    })
  }

  /**
   * Accepts no more batches. Resolves when every accepted batch is durable. Rejects with the failure that
   * ended the session.
   */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      await this.#last
      this.#release()
      if (this.#failure === undefined) this.#acks.complete()
    }
    await this.#last
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Closes the session for `await using`. Unlike `close` it does not reject. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {})
  }

  async #append(
    batch: AppendBatch,
    reservation: Reservation,
    previous: Promise<unknown>,
    started: () => void,
  ): Promise<AppendAck> {
    const { appender, closing } = this.#context
    try {
      if (appender.group.failed) {
        // The append that failed reports the failure first.
        await previous
        throw this.#failure === undefined ? discardedError() : this.#failure.error
      }
      const ack = await appender.append(batch, reservation, started)
      this.#acks.next(ack)
      return ack
    } catch (error) {
      // An engine that closes rejects this batch and later ones; earlier ones are still in flight.
      const isClosing = closing.aborted && HeadwaterError.is(error) && error.code === 'unavailable'
      if (!isClosing) appender.group.fail()
      this.#end(error)
      throw error
    } finally {
      reservation.release()
      this.#inFlight.release(batch.meteredBytes)
    }
  }

  /** Accepts no more batches. Batches accepted before are still appended. */
  #end(error: unknown): void {
    if (this.#isClosed && this.#failure !== undefined) return
    this.#isClosed = true
    this.#failure = { error }
    void this.#last.then(() => this.#fail())
  }

  /** Appends nothing except the batches in flight, and waits a while for their acks. */
  #revoke(error: unknown): void {
    const { appender, clock } = this.#context
    appender.group.fail()
    this.#end(error)
    const cancel = clock.schedule(REVOKED_WAIT_MS, () => this.#fail())
    void this.#last.then(cancel)
  }

  #fail(): void {
    this.#release()
    this.#acks.error(this.#failure?.error)
  }

  #endedError(): unknown {
    return this.#failure === undefined
      ? new HeadwaterError('unavailable', 'the append session is closed')
      : this.#failure.error
  }
}
