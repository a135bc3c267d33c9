import {
  type AppendConditions,
  appendRecord,
  assertFencingToken,
  BatchSize,
  type RecordInput,
} from '../model/append-input.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import type { AppendRecord } from '../model/record.ts'
import { assertInteger, assertMembers, type Check, type MembersOf } from '../model/validation.ts'
import { onAnyAbort } from '../runtime/abort.ts'
import {
  type AppendSession,
  type AppendTicket,
  EndFailure,
  type Reservation,
  type StreamContext,
} from './append-session.ts'
import { CALL_OPTIONS, type CallOptions, signalOf } from './call-options.ts'

/** Options of a producer. `matchSeqNum` is that of the first record; each batch has to follow the last. */
export interface ProducerOptions extends Pick<AppendConditions, 'fencingToken' | 'matchSeqNum'> {
  /** Ends the producer: records that are not durable by then fail with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds that a record waits for others in its batch. 5 by default; 0 sends in the next turn. */
  readonly lingerMs?: number | undefined
  /** Records per batch, 1 to 1,000. 1,000 by default. */
  readonly recordsMax?: number | undefined
  /** Metered bytes per batch, 1 to 1,048,576 (1 MiB, the default). A single record may be larger. */
  readonly bytesMax?: number | undefined
}

const PRODUCER_OPTIONS: MembersOf<ProducerOptions> = {
  fencingToken: assertFencingToken,
  matchSeqNum: assertInteger,
  ...CALL_OPTIONS,
  lingerMs: 'number',
  recordsMax: isWithin(BATCH_RECORDS_MAX),
  bytesMax: isWithin(BATCH_METERED_BYTES_MAX),
}

function isWithin(max: number): Check {
  return (value, field) => {
    if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > max) {
      const range = `1 to ${max.toLocaleString('en-US')}`
      throw invalid(`${field} must be an integer from ${range}, not ${String(value)}`, field)
    }
  }
}

/** The ack of one record. */
export interface RecordAck {
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

interface ProducerContext extends StreamContext {
  /** Opens a session that does not end when the engine closes. */
  readonly openSession: () => Promise<AppendSession>
}

/** A record's place in a batch: resolves with the ack of the batch. */
interface BatchedRecord {
  readonly index: number
  readonly acked: Promise<AppendAck>
}

/**
 * Collects single records into batches and appends them through a session, which it opens with the first: one
 * ack per record, in order. The first failure ends it.
 */
export class Producer {
  readonly #context: ProducerContext
  readonly #signal: AbortSignal | undefined
  readonly #lingerMs: number
  readonly #recordsMax: number
  readonly #bytesMax: number
  readonly #fencingToken: string | undefined
  #matchSeqNum: number | undefined
  #ignoreSignals: (() => void) | undefined
  #session: Promise<AppendSession> | undefined
  #filling: Batch | undefined
  #cancelLinger: (() => void) | undefined
  /** Resolves when the session has accepted the last batch: the back-pressure of `submit`. */
  #accepted: Promise<unknown> = Promise.resolve()
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false
  readonly #failure = new EndFailure()

  /** @internal Throws `invalid` for options out of range. */
  constructor(options: ProducerOptions, context: ProducerContext) {
    assertMembers(options, PRODUCER_OPTIONS, 'options')
    const { lingerMs = 5, recordsMax = BATCH_RECORDS_MAX, bytesMax = BATCH_METERED_BYTES_MAX } = options
    if (!(lingerMs >= 0)) throw invalid(`lingerMs must be at least 0, not ${lingerMs}`, 'lingerMs')
    this.#context = context
    this.#signal = options.signal
    this.#lingerMs = lingerMs
    this.#recordsMax = recordsMax
    this.#bytesMax = bytesMax
    this.#fencingToken = options.fencingToken
    this.#matchSeqNum = options.matchSeqNum
  }

  /**
   * Accepts one record. Resolves when there is room for more. Rejects with `invalid` for a record that breaks
   * a rule, and with the failure that ended the producer. A signal that aborts later does not withdraw the
   * record.
   */
  async submit(input: RecordInput, options?: CallOptions): Promise<RecordTicket> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    // Validated and copied now: the caller may reuse its buffers as soon as the call returns.
    const record = appendRecord(input)
    const { index, acked } = await this.#failure.report(this.#add(record), signal)
    return {
      ack: async (options) => {
        const batch = await this.#failure.report(acked, signalOf(options))
        return { seqNum: batch.start.seqNum + index, batch }
      },
    }
  }

  /** Sends the collected records. Resolves when everything submitted so far is durable. */
  async flush(options?: CallOptions): Promise<void> {
    await this.#failure.report(this.#flush(), signalOf(options))
  }

  /** Flushes and ends. Rejects with the failure that ended the producer. */
  async close(options?: CallOptions): Promise<void> {
    await this.#failure.report(this.#close(), signalOf(options))
  }

  /**
   * Closes the producer for `await using`. Rejects as `close` does, unless a call of the producer or of one
   * of its tickets has already rejected because of the failure.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#failure.reportOnce(this.#close())
  }

  async #add(record: AppendRecord): Promise<BatchedRecord> {
    this.#failure.throwIfPresent()
    if (this.#isClosed) throw new HeadwaterError('closed', 'the producer is closed')
    this.#context.closing.throwIfAborted()
    this.#signal?.throwIfAborted()
    const overflows = this.#filling !== undefined && !this.#filling.hasRoom(record, this.#bytesMax)
    if (overflows) this.#send()
    this.#failure.throwIfPresent()
    const batch = this.#currentBatch()
    const index = batch.add(record)
    const isFull = batch.records.length >= this.#recordsMax || batch.meteredBytes >= this.#bytesMax
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
    this.#ignoreSignals ??= onAnyAbort([this.#context.closing, this.#signal], () => {
      this.#send()
      this.#endSession()
    })
    if (this.#filling === undefined) {
      this.#filling = new Batch((error) => this.#fail(error, true))
      this.#cancelLinger = this.#context.clock.schedule(this.#lingerMs, () => this.#send())
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
    const conditions = { fencingToken: this.#fencingToken, matchSeqNum: this.#matchSeqNum }
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
  readonly #size = new BatchSize()
  readonly acked: Promise<AppendAck>
  #resolve!: (ack: Promise<AppendAck>) => void

  /** Calls `onFailed` before any ack rejects. */
  constructor(onFailed: (error: unknown) => void) {
    this.acked = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.acked.catch(onFailed)
  }

  get meteredBytes(): number {
    return this.#size.meteredBytes
  }

  hasRoom(record: AppendRecord, bytesMax: number): boolean {
    return this.meteredBytes + record.meteredBytes <= bytesMax && this.#size.hasRoomFor(record)
  }

  /** Returns the index of the record in the batch. */
  add(record: AppendRecord): number {
    this.#size.add(record)
    return this.records.push(record) - 1
  }

  settleWith(submitted: Promise<AppendTicket>): void {
    this.#resolve(submitted.then((ticket) => ticket.ack()))
  }
}
