import { type AppendConditions, appendRecord, type RecordInput } from '../model/append-input.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { checkInteger } from '../model/integers.ts'
import { BATCH_ENCODED_BYTES_MAX, BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { fencingTokenProblem, refuse } from '../model/names.ts'
import type { AppendRecord } from '../model/record.ts'
import type { Clock } from '../storage/clock.ts'
import { onAbort } from './abort.ts'
import type { AppendSession, AppendTicket } from './append-session.ts'

export interface ProducerOptions extends AppendConditions {
  /** Ends the producer: what was not durable by then fails with its reason. */
  readonly signal?: AbortSignal | undefined
  /** How long a record waits for others to share its batch, in milliseconds; 5 by default, 0 sends at the next turn. */
  readonly lingerMs?: number
  /** 1 to 1,000 records a batch; 1,000 by default. */
  readonly recordsMax?: number
  /** Metered bytes a batch, up to 1 MiB; 1 MiB by default. A single record may be larger. */
  readonly bytesMax?: number
}

export interface RecordAck {
  /** The record's own sequence number. */
  readonly seqNum: number
  /** The ack of the batch that it went in. */
  readonly batch: AppendAck
}

/** A record that a producer has taken in. */
export interface RecordTicket {
  /** Resolves when the record is durable, rejects when it or one before it failed. */
  ack(): Promise<RecordAck>
}

/**
 * Gathers single records into batches and appends them through a session: one ack a record, in order. `matchSeqNum` holds for the first
 * record, and then each batch expects to follow the one before, so that nobody else's records come between.
 */
export class Producer {
  readonly #openSession: () => Promise<AppendSession>
  readonly #clock: Clock
  readonly #lingerMs: number
  readonly #recordsMax: number
  readonly #bytesMax: number
  readonly #fencingToken: string | undefined
  #matchSeqNum: number | undefined
  #session: Promise<AppendSession> | undefined
  #filling: Batch | undefined
  #cancelLinger: (() => void) | undefined
  readonly #ignoreEndings: () => void
  readonly #signal: AbortSignal | undefined
  readonly #closing: AbortSignal
  /** Hands batches to the session one after the other; what is submitted waits for it: that is the back-pressure. */
  #handOver: Promise<unknown> = Promise.resolve()
  #last: Promise<unknown> = Promise.resolve()
  #closed = false
  #failure: unknown

  constructor(
    openSession: () => Promise<AppendSession>,
    engine: { readonly clock: Clock; readonly closing: AbortSignal },
    options: ProducerOptions,
  ) {
    const { clock, closing } = engine
    this.#closing = closing
    this.#openSession = openSession
    this.#clock = clock
    this.#lingerMs = options.lingerMs ?? 5
    this.#recordsMax = within(options.recordsMax ?? BATCH_RECORDS_MAX, 1, BATCH_RECORDS_MAX, 'recordsMax')
    this.#bytesMax = within(
      options.bytesMax ?? BATCH_METERED_BYTES_MAX,
      1,
      BATCH_METERED_BYTES_MAX,
      'bytesMax',
    )
    if (!(this.#lingerMs >= 0)) throw invalid('lingerMs must not be negative', 'lingerMs')
    this.#fencingToken = options.fencingToken
    if (options.fencingToken !== undefined) refuse(fencingTokenProblem(options.fencingToken), 'fencingToken')
    if (options.matchSeqNum !== undefined) checkInteger(options.matchSeqNum, 'matchSeqNum')
    this.#matchSeqNum = options.matchSeqNum
    // What has gathered is sent to a session that refuses it: nobody waits for an ack that never comes.
    const { signal } = options
    const ignores = [closing, signal].map((ending) => ending && onAbort(ending, () => this.#send()))
    this.#ignoreEndings = () => {
      for (const ignore of ignores) ignore?.()
    }
    this.#signal = signal
  }

  /** Takes in one record. Resolves when there is room for more; its `ack` resolves when the record is durable. */
  async submit(input: RecordInput): Promise<RecordTicket> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#closed) throw new HeadwaterError('unavailable', 'the producer is closed')
    this.#closing.throwIfAborted()
    this.#signal?.throwIfAborted()
    const record = appendRecord(input)
    const overflows = this.#filling !== undefined && !this.#filling.hasRoom(record, this.#bytesMax)
    if (overflows) this.#send()
    const batch = this.#fill()
    const index = batch.add(record)
    const isFull = batch.records.length >= this.#recordsMax || batch.meteredBytes >= this.#bytesMax
    if (isFull) this.#send()
    if (isFull || overflows) await this.#handOver
    return { ack: async () => recordAck(await batch.acked, index) }
  }

  /** Sends what has gathered and resolves when everything submitted so far is durable. */
  async flush(): Promise<void> {
    this.#send()
    await this.#last
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Flushes and ends; rejects with the failure that ended the producer. */
  async close(): Promise<void> {
    this.#closed = true
    this.#ignoreEndings()
    this.#send()
    await this.#last
    await (await this.#session)?.close().catch(() => {})
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Like `close`, without the failure: for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => {})
  }

  #fill(): Batch {
    if (this.#filling === undefined) {
      this.#filling = new Batch()
      this.#cancelLinger = this.#clock.schedule(this.#lingerMs, () => this.#send())
    }
    return this.#filling
  }

  #send(): void {
    const batch = this.#filling
    if (batch === undefined) return
    this.#filling = undefined
    this.#cancelLinger?.()
    const conditions = { fencingToken: this.#fencingToken, matchSeqNum: this.#matchSeqNum }
    if (this.#matchSeqNum !== undefined) this.#matchSeqNum += batch.records.length
    this.#session ??= this.#openSession()
    const opening = this.#session
    const { records, meteredBytes } = batch
    const submitted = this.#handOver.then(async () =>
      (await opening).submitBatch({ records, meteredBytes, ...conditions }),
    )
    this.#handOver = submitted.catch(() => {})
    batch.settleWith(submitted)
    this.#last = batch.acked.catch((error: unknown) => {
      this.#failure ??= error
      this.#ignoreEndings()
    })
  }
}

class Batch {
  readonly records: AppendRecord[] = []
  meteredBytes = 0
  #encodedBytes = 0
  readonly acked: Promise<AppendAck>
  #resolve!: (ack: Promise<AppendAck>) => void

  constructor() {
    this.acked = new Promise((resolve) => {
      this.#resolve = resolve
    })
    // Records whose ack nobody asks for must not surface as unhandled rejections.
    this.acked.catch(() => {})
  }

  hasRoom(record: AppendRecord, bytesMax: number): boolean {
    return (
      this.meteredBytes + record.meteredBytes <= bytesMax &&
      this.#encodedBytes + record.encodedBytesMax <= BATCH_ENCODED_BYTES_MAX
    )
  }

  /** Returns the place of the record in the batch. */
  add(record: AppendRecord): number {
    this.meteredBytes += record.meteredBytes
    this.#encodedBytes += record.encodedBytesMax
    return this.records.push(record) - 1
  }

  settleWith(submitted: Promise<AppendTicket>): void {
    this.#resolve(submitted.then((ticket) => ticket.ack()))
  }
}

function recordAck(batch: AppendAck, index: number): RecordAck {
  return { seqNum: batch.start.seqNum + index, batch }
}

function within(value: number, least: number, most: number, field: string): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw invalid(`${field} must be an integer from ${least} to ${most}`, field)
  }
  return value
}
