import type { AppendConditions } from '../model/append-input.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_ENCODED_BYTES_MAX } from '../model/limits.ts'
import type { AppendRecord } from '../model/record.ts'
import { onAnyAbort, type SharedSignal } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { type AppendSession, type AppendTicket, EndFailure, type Reservation } from './append-session.ts'
import { type CallOptions, signalOf } from './call-options.ts'
import { producerClosedError } from './errors.ts'

export interface RecordBatcherOptions extends AppendConditions {
  readonly signal: AbortSignal | undefined
  readonly lingerMs: number
  readonly recordsMax: number
  readonly bytesMax: number
}

export interface RecordBatcherContext {
  /** Opens a session that does not end when the engine closes. */
  readonly openSession: () => Promise<AppendSession>
  readonly reserve: (meteredBytes: number) => Reservation
  readonly clock: Clock
  readonly closing: SharedSignal
}

/**
 * The ack of one record.
 *
 * ```ts
 * const ticket = await stream.producer().submit('hello')
 * const { seqNum, batch } = await ticket.ack()
 * console.log(seqNum, batch.start.seqNum, batch.end.seqNum)
 * ```
 */
export interface RecordAck {
  /** The sequence number of the record. */
  readonly seqNum: number
  /** The ack of the batch that contains it. */
  readonly batch: AppendAck
}

/** A record that a producer has accepted. */
export interface RecordTicket {
  /**
   * Resolves when the record is durable. Rejects when its batch failed, and with `append_discarded` when an
   * earlier batch failed: that failure is the `cause`.
   */
  ack(options?: CallOptions): Promise<RecordAck>
}

/** A record's place in a batch: resolves with the ack of the batch. */
interface BatchedRecord {
  readonly index: number
  readonly acked: Promise<AppendAck>
}

/** Collects single records into batches and appends them through a session that it opens with the first. */
export class RecordBatcher {
  readonly #context: RecordBatcherContext
  readonly #options: RecordBatcherOptions
  #ignoreSignals: (() => void) | undefined
  #matchSeqNum: number | undefined
  #session: Promise<AppendSession> | undefined
  #filling: Batch | undefined
  #cancelLinger: (() => void) | undefined
  /** Resolves when the session has accepted the last batch: the back-pressure of `add`. */
  #accepted: Promise<unknown> = Promise.resolve()
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false
  readonly #failure = new EndFailure()

  constructor(context: RecordBatcherContext, options: RecordBatcherOptions) {
    this.#context = context
    this.#options = options
    this.#matchSeqNum = options.matchSeqNum
  }

  /** Accepts one record. Resolves when there is room for more. */
  async submit(record: AppendRecord, signal: AbortSignal | undefined): Promise<RecordTicket> {
    const { index, acked } = await this.#failure.report(this.#add(record), signal)
    return {
      ack: async (options) => {
        const batch = await this.#failure.report(acked, signalOf(options))
        return { seqNum: batch.start.seqNum + index, batch }
      },
    }
  }

  /** Sends the current batch. Resolves when everything submitted so far is durable. */
  flush(signal: AbortSignal | undefined): Promise<void> {
    return this.#failure.report(this.#flush(), signal)
  }

  /** Flushes and ends. Rejects with the failure that ended the batcher. */
  close(signal: AbortSignal | undefined): Promise<void> {
    return this.#failure.report(this.#close(), signal)
  }

  /** Closes. Rejects unless a call or a ticket has already rejected because of the failure. */
  dispose(): Promise<void> {
    return this.#failure.reportOnce(this.#close())
  }

  async #add(record: AppendRecord): Promise<BatchedRecord> {
    this.#failure.throwIfPresent()
    if (this.#isClosed) throw producerClosedError()
    this.#context.closing.throwIfAborted()
    this.#options.signal?.throwIfAborted()
    const overflows = this.#filling !== undefined && !this.#filling.hasRoom(record, this.#options.bytesMax)
    if (overflows) this.#send()
    this.#failure.throwIfPresent()
    const batch = this.#currentBatch()
    const index = batch.add(record)
    const { recordsMax, bytesMax } = this.#options
    const isFull = batch.records.length >= recordsMax || batch.meteredBytes >= bytesMax
    if (isFull) this.#send()
    if (isFull || overflows) await this.#accepted
    return { index, acked: batch.acked }
  }

  async #flush(): Promise<void> {
    this.#send()
    await this.#last
    this.#failure.throwIfPresent()
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    this.#ignoreSignals?.()
    this.#send()
    await this.#last
    await (await this.#session)?.close().catch(() => {})
    this.#failure.throwIfPresent()
  }

  #currentBatch(): Batch {
    // The session rejects the batch if the signal ended it, so that no ack is left pending.
    this.#ignoreSignals ??= onAnyAbort([this.#context.closing, this.#options.signal], () => {
      this.#send()
      this.#endSession()
    })
    if (this.#filling === undefined) {
      this.#filling = new Batch((error) => this.#fail(error, true))
      this.#cancelLinger = this.#context.clock.schedule(this.#options.lingerMs, () => this.#send())
    }
    return this.#filling
  }

  #send(): void {
    const batch = this.#filling
    if (batch === undefined) return
    this.#filling = undefined
    this.#cancelLinger?.()
    const { records, meteredBytes } = batch
    let reservation: Reservation
    try {
      reservation = this.#context.reserve(meteredBytes)
    } catch (error) {
      this.#reject(batch, error)
      return
    }
    const conditions = { fencingToken: this.#options.fencingToken, matchSeqNum: this.#matchSeqNum }
    if (this.#matchSeqNum !== undefined) this.#matchSeqNum += records.length
    this.#session ??= this.#context.openSession()
    const submitted = this.#session.then(
      (session) => session.submitBatch({ records, meteredBytes, ...conditions }, reservation),
      (error: unknown) => {
        reservation.release()
        throw error
      },
    )
    this.#accepted = submitted.catch(() => {})
    batch.settleWith(submitted)
    this.#last = batch.acked.catch(() => {})
  }

  #reject(batch: Batch, error: unknown): void {
    this.#fail(error)
    batch.settleWith(Promise.reject(error))
    this.#endSession()
  }

  /** Batches that were sent are still appended. */
  #endSession(): void {
    this.#session?.then((session) => session.close()).catch(() => {})
  }

  #fail(error: unknown, isOfAppend = false): void {
    this.#failure.set(error, isOfAppend)
    this.#ignoreSignals?.()
  }
}

class Batch {
  readonly records: AppendRecord[] = []
  meteredBytes = 0
  #encodedBytes = 0
  readonly acked: Promise<AppendAck>
  #resolve!: (ack: Promise<AppendAck>) => void

  /** Calls `onFailed` before any ack rejects. */
  constructor(onFailed: (error: unknown) => void) {
    this.acked = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.acked.catch(onFailed)
  }

  hasRoom(record: AppendRecord, bytesMax: number): boolean {
    return (
      this.meteredBytes + record.meteredBytes <= bytesMax &&
      this.#encodedBytes + record.encodedBytesMax <= BATCH_ENCODED_BYTES_MAX
    )
  }

  /** Returns the index of the record in the batch. */
  add(record: AppendRecord): number {
    this.meteredBytes += record.meteredBytes
    this.#encodedBytes += record.encodedBytesMax
    return this.records.push(record) - 1
  }

  settleWith(submitted: Promise<AppendTicket>): void {
    this.#resolve(submitted.then((ticket) => ticket.ack()))
  }
}
