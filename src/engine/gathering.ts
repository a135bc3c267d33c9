import { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { BATCH_ENCODED_BYTES_MAX } from '../model/limits.ts'
import type { AppendRecord } from '../model/record.ts'
import type { Clock } from '../storage/clock.ts'
import { onAbort } from './abort.ts'
import type { Allowance } from './allowance.ts'
import type { AppendSession, AppendTicket } from './append-session.ts'
import type { GatheringOptions, RecordAck, RecordTicket } from './producer.ts'

/** What a {@link Producer} does: gathers records into batches and appends them through a session. */
export class Gathering {
  readonly #openSession: () => Promise<AppendSession>
  readonly #clock: Clock
  readonly #options: GatheringOptions
  #matchSeqNum: number | undefined
  #session: Promise<AppendSession> | undefined
  #filling: Batch | undefined
  #cancelLinger: (() => void) | undefined
  readonly #ignoreEndings: () => void
  readonly #closing: AbortSignal
  readonly #pendingBytes: Allowance
  /** Resolves when the session has taken in the last batch; what is submitted waits for it: that is the back-pressure. */
  #handOver: Promise<unknown> = Promise.resolve()
  #last: Promise<unknown> = Promise.resolve()
  #closed = false
  #failure: unknown

  constructor(
    openSession: () => Promise<AppendSession>,
    engine: {
      readonly clock: Clock
      readonly closing: AbortSignal
      readonly pendingBytes: Allowance
    },
    options: GatheringOptions,
  ) {
    this.#openSession = openSession
    this.#clock = engine.clock
    this.#closing = engine.closing
    this.#pendingBytes = engine.pendingBytes
    this.#options = options
    this.#matchSeqNum = options.matchSeqNum
    // What has gathered is sent to a session that refuses it: nobody waits for an ack that never comes.
    const endings = [engine.closing, options.signal]
    const ignores = endings.map((ending) => ending && onAbort(ending, () => this.#send()))
    this.#ignoreEndings = () => {
      for (const ignore of ignores) ignore?.()
    }
  }

  /** Takes in one record. Resolves when there is room for more; its `ack` resolves when the record is durable. */
  async submit(record: AppendRecord): Promise<RecordTicket> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#closed) throw new HeadwaterError('unavailable', 'the producer is closed')
    this.#closing.throwIfAborted()
    this.#options.signal?.throwIfAborted()
    const overflows = this.#filling !== undefined && !this.#filling.hasRoom(record, this.#options.bytesMax)
    if (overflows) this.#send()
    if (this.#failure !== undefined) throw this.#failure
    const batch = this.#fill()
    const index = batch.add(record)
    const isFull =
      batch.records.length >= this.#options.recordsMax || batch.meteredBytes >= this.#options.bytesMax
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

  #fill(): Batch {
    if (this.#filling === undefined) {
      this.#filling = new Batch()
      this.#cancelLinger = this.#clock.schedule(this.#options.lingerMs, () => this.#send())
    }
    return this.#filling
  }

  #send(): void {
    const batch = this.#filling
    if (batch === undefined) return
    this.#filling = undefined
    this.#cancelLinger?.()
    const { records, meteredBytes } = batch
    let giveBack: () => void
    try {
      giveBack = this.#pendingBytes.take(meteredBytes)
    } catch (error) {
      this.#refuse(batch, error)
      return
    }
    const conditions = { fencingToken: this.#options.fencingToken, matchSeqNum: this.#matchSeqNum }
    if (this.#matchSeqNum !== undefined) this.#matchSeqNum += batch.records.length
    this.#session ??= this.#openSession()
    const opening = this.#session
    // In the order of the calls. From here on the session counts it.
    const submit = (session: AppendSession) => {
      giveBack()
      return session.submitBatch({ records, meteredBytes, ...conditions })
    }
    const submitted = opening.then(submit, (error: unknown) => {
      giveBack()
      throw error
    })
    this.#handOver = submitted.catch(() => {})
    batch.settleWith(submitted)
    this.#last = batch.acked.catch((error: unknown) => {
      this.#failure ??= error
      this.#ignoreEndings()
    })
  }

  /** At once, so that nothing is stored behind it; what was sent before is still appended. */
  #refuse(batch: Batch, error: unknown): void {
    this.#failure ??= error
    this.#ignoreEndings()
    batch.settleWith(Promise.reject(error))
    this.#session?.then((session) => session.close()).catch(() => {})
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
