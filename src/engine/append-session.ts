import type { Observable } from 'rxjs'
import {
  type AppendBatch,
  type AppendConditions,
  appendBatch,
  asArray,
  type RecordInput,
} from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import type { Clock } from '../storage/clock.ts'
import { onAbort } from './abort.ts'
import type { Allowance } from './allowance.ts'
import { AppendGroup } from './append-group.ts'
import { ByteBudget } from './byte-budget.ts'
import type { StreamUse } from './context.ts'
import { discardedError } from './errors.ts'
import { Multicast } from './multicast.ts'
import type { StreamAccess } from './stream-access.ts'
import type { StreamLog } from './stream-log.ts'
import type { HeldStream } from './stream-logs.ts'

/** How long the acks of what is on its way are waited for when a session is cut, in milliseconds. */
const CUT_MS = 500

/** An append that a session has taken in. */
export interface AppendTicket {
  /** Resolves when the append is durable, rejects when it or one before it failed. */
  ack(): Promise<AppendAck>
}

export interface AppendSessionOptions {
  /** Ends the session with its reason. */
  readonly signal?: AbortSignal | undefined
  /**
   * Takes from its opener the right to append: ends the session with its reason within a second, and what is not on its way to the storage by
   * then is not appended.
   */
  readonly ending?: AbortSignal | undefined
  /** Called once when the session is over. */
  readonly onEnd?: (() => void) | undefined
  /** Throws what a batch is refused for; that ends the session. */
  readonly check?: ((batch: AppendBatch) => void) | undefined
}

/**
 * Appends in a pipeline: the next is taken in while earlier ones are still being made durable, conditions are checked in order, acks come
 * in order. The first failure ends the session: nothing behind it is appended. It stays with the stream as it was when it was opened.
 */
export class AppendSession {
  readonly #access: StreamAccess
  readonly #use: StreamUse
  readonly #log: StreamLog
  readonly #check: (batch: AppendBatch) => void
  readonly #release: () => void
  readonly #budget: ByteBudget
  readonly #pendingBytes: Allowance
  readonly #group = new AppendGroup()
  readonly #closing: AbortSignal
  readonly #acks = new Multicast<AppendAck>()
  #last: Promise<unknown> = Promise.resolve()
  #closed = false
  #failure: unknown

  constructor(
    access: StreamAccess,
    use: StreamUse,
    held: HeldStream,
    inFlightBytes: number,
    options: AppendSessionOptions & {
      readonly closing: AbortSignal
      readonly clock: Clock
      readonly pendingBytes: Allowance
    },
  ) {
    this.#access = access
    this.#use = use
    this.#log = held.log
    this.#check = options.check ?? (() => {})
    this.#budget = new ByteBudget(inFlightBytes)
    this.#pendingBytes = options.pendingBytes
    const ignores: (() => void)[] = []
    this.#release = () => {
      for (const ignore of ignores) ignore()
      held.release()
      options.onEnd?.()
    }
    const { closing, signal, ending, clock } = options
    this.#closing = closing
    for (const end of [closing, signal]) if (end) ignores.push(onAbort(end, () => this.#end(end.reason)))
    if (ending) ignores.push(onAbort(ending, () => this.#cut(ending.reason, clock)))
  }

  /** Acks in order; completes when the session is closed, fails with the session. */
  get acks$(): Observable<AppendAck> {
    return this.#acks.observable
  }

  /**
   * Takes in one batch (1 to 1,000 records, 1 MiB metered). Resolves when there is room for it among the bytes in flight, those of the
   * session and those of all: awaiting it is the back-pressure. Rejects when the session is over, when the batch is `invalid`, and with
   * `rate_limited` when too many bytes wait (`limits.appendWaitingBytes`): both end the session.
   */
  submit(
    records: RecordInput | readonly RecordInput[],
    conditions: AppendConditions = {},
  ): Promise<AppendTicket> {
    if (this.#closed) return Promise.reject(this.#failure ?? sessionClosed())
    let batch: AppendBatch
    try {
      batch = appendBatch(asArray(records), conditions)
    } catch (error) {
      this.#end(error)
      return Promise.reject(error)
    }
    return this.submitBatch(batch)
  }

  /** The same for a batch that was validated. */
  submitBatch(batch: AppendBatch): Promise<AppendTicket> {
    if (this.#closed) return Promise.reject(this.#failure ?? sessionClosed())
    let settled: () => void
    try {
      this.#check(batch)
      settled = this.#pendingBytes.take(batch.meteredBytes)
    } catch (error) {
      this.#end(error)
      return Promise.reject(error)
    }
    const previous = this.#last
    return new Promise((taken, refused) => {
      this.#last = new Promise<void>((over) => {
        this.#budget.acquire(batch.meteredBytes, () => {
          const acked = this.#append(batch, previous, settled, () => taken({ ack: () => acked }))
          acked.catch(refused)
          // One that comes too late is over before those that are on their way.
          acked.then(
            () => over(),
            () => previous.then(() => over()),
          )
        })
      })
    })
  }

  /** Takes in no more; resolves when everything taken in is durable, rejects with the failure that ended the session. */
  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true
      await this.#last
      this.#release()
      if (this.#failure === undefined) this.#acks.complete()
    }
    await this.#last
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Like `close`, without the failure: for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {})
  }

  async #append(
    batch: AppendBatch,
    previous: Promise<unknown>,
    settled: () => void,
    admitted: () => void,
  ): Promise<AppendAck> {
    try {
      if (this.#group.failed) {
        // The failure is told by the append that failed.
        await previous
        throw this.#failure ?? discardedError()
      }
      const ack = await this.#access.appendTo(this.#log, this.#use, batch, this.#group, admitted)
      this.#acks.next(ack)
      return ack
    } catch (error) {
      // An engine that closes takes in nothing more, this or what is behind it; what is before it is still on its way.
      const isTooLate = this.#closing.aborted && HeadwaterError.is(error) && error.code === 'unavailable'
      if (!isTooLate) this.#group.fail()
      this.#end(error)
      throw error
    } finally {
      settled()
      this.#budget.release(batch.meteredBytes)
    }
  }

  /** Nothing more is taken in; what was taken in before an invalid batch is still appended. */
  #end(error: unknown): void {
    if (this.#closed && this.#failure !== undefined) return
    this.#closed = true
    this.#failure = error
    void this.#last.then(() => this.#tellEnd())
  }

  /** Nothing more is appended than what is on its way; its acks are waited for, but not for ever. */
  #cut(error: unknown, clock: Clock): void {
    this.#group.fail()
    this.#end(error)
    const cancel = clock.schedule(CUT_MS, () => this.#tellEnd())
    void this.#last.then(cancel)
  }

  #tellEnd(): void {
    this.#release()
    this.#acks.error(this.#failure)
  }
}

function sessionClosed(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the append session is closed')
}
