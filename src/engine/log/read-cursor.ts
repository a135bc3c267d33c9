import { deletedUnderReadError } from '../../api/errors.ts'
import type { Heartbeat, ReadEvent, RecordCursor } from '../../api/record-cursor.ts'
import type { ReadPlan } from '../../core/read-plan.ts'
import { extendedExpiry, isExpired } from '../../core/retention.ts'
import { streamTailOf } from '../../core/sequence.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { StreamTail } from '../../model/position.ts'
import { isPromise, LATER, type MaybePromise, type Receiver } from '../../runtime/maybe-promise.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import { HistoryPhase } from './history-phase.ts'
import { LivePhase, type LivePhaseOptions, type LiveStep } from './live-phase.ts'
import { type ReadBudget, type ReadShare, readCost } from './read-budget.ts'
import { ReadProgress } from './read-progress.ts'
import { expectedBytes, SMALL_BYTES } from './read-scheduler.ts'
import type { RecordReader } from './record-codec.ts'
import type { StreamLog } from './stream-log.ts'

export interface ReadCursorOptions extends LivePhaseOptions {
  readonly reader: RecordReader
  readonly budget: ReadBudget
  /** Counts what is delivered. */
  readonly meter?: { delivered(basin: string, meteredBytes: number): void } | undefined
  /** Called once, when the read ends. */
  readonly onClose: () => void
}

/**
 * One open read. It moves only when `next` is called, so its consumer sets the pace. It reads history from
 * the storage and then, if the plan waits, follows live; when it falls behind, it reads history again.
 * Closing frees everything.
 */
export class ReadCursor implements RecordCursor {
  readonly #log: StreamLog
  readonly #plan: ReadPlan
  readonly #options: ReadCursorOptions
  readonly #progress: ReadProgress
  readonly #history: HistoryPhase
  readonly #live: LivePhase
  readonly #share: ReadShare
  /**
   * Ends the read when others need the memory of a consumer that pauses: called before the error is reported.
   * If undefined, the read drops what it holds, and continues when its consumer asks again.
   */
  onEvicted: (() => void) | undefined
  #phase: 'history' | 'live' | 'closed' = 'history'
  /** The end of the history: the tail when the read was opened or when it last fell behind. */
  #end: number
  /** Ends the wait for the storage or a cipher when the read is closed. Undefined while it does not wait. */
  #abandon: ((result: undefined) => void) | undefined
  #failure: { readonly error: unknown } | undefined
  /** Receives the next event while the read waits. */
  #receive: Receiver<ReadEvent | undefined> | undefined

  constructor(log: StreamLog, plan: ReadPlan, options: ReadCursorOptions) {
    const { reader, clock, budget } = options
    const progress = new ReadProgress(plan)
    this.#log = log
    this.#plan = plan
    this.#options = options
    this.#end = log.head.tail.seqNum
    this.#progress = progress
    this.#share = budget.open((reason) => this.#releaseMemory(reason))
    const recordsOf = (blocks: readonly Uint8Array[]) => log.recordsOf(blocks, plan.waitMs > 0)
    const { extensions } = log.head
    const openedAt = clock.now()
    const hasExpired = (block: StoredBlock) => isExpired(extendedExpiry(block, extensions), openedAt)
    this.#history = new HistoryPhase(log.blockSource(this.#share), reader, progress, hasExpired, recordsOf)
    this.#live = new LivePhase(log, reader, progress, plan.waitMs, options)
  }

  /** The tail of the stream, as far as is known. */
  get tail(): StreamTail {
    return streamTailOf(this.#log.head)
  }

  /** The stream that is read, the sequence number of the next record to deliver, and the tail. */
  get state() {
    const { document, head } = this.#log
    const { basin, name: stream } = document
    return { basin, stream, position: this.#progress.position, tail: head.tail.seqNum }
  }

  /**
   * Moves to the start of the read. Resolves to whether there is a stored record to deliver; to undefined if
   * the read was closed meanwhile. Called once, before `next`.
   */
  locate(): Promise<boolean | undefined> {
    return this.#unlessClosed(this.#history.locate(this.#plan, this.#end))
  }

  /**
   * The next batch or heartbeat; undefined at the end. One call at a time. A rejection closes the cursor:
   * `stream_deleted` when the stream is deleted, `closed` when the engine closes, `storage` when the storage
   * fails.
   */
  next(): MaybePromise<ReadEvent | undefined>
  /** Does the same as `next()`, but may also return `LATER` and call `receive` with the event. */
  next(receive: Receiver<ReadEvent | undefined>): MaybePromise<ReadEvent | undefined> | typeof LATER
  next(receive?: Receiver<ReadEvent | undefined>): MaybePromise<ReadEvent | undefined> | typeof LATER {
    this.#receive = receive
    if (this.#phase !== 'history') return this.#awaited(this.#follow())
    this.#share.moved()
    const caughtUp = this.#catchUp()
    if (receive === undefined) return caughtUp as Promise<ReadEvent | undefined>
    caughtUp.then(
      (event) => {
        if (event !== LATER) receive(event)
      },
      () => receive(caughtUp as Promise<never>),
    )
    return LATER
  }

  /** The next batch of the records stored when the read was opened; undefined at their end. Does not wait. */
  nextStored(): Promise<ReadBatch | undefined> {
    return this.#step(async () => (this.#phase === 'history' ? this.#nextBatchInHistory() : undefined))
  }

  /**
   * Ends the read. A pending `next` resolves to undefined at once. May be called at any time and more than
   * once.
   */
  close(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#live.close()
    this.#log.forgetRead()
    this.#abandon?.(undefined)
    this.#history.close()
    this.#share.close()
    this.#options.onClose()
  }

  /** Sends a heartbeat now if the read waits at the tail. */
  beat(): void {
    this.#live.beat()
  }

  /** Ends the read. The pending `next`, or else the next one, rejects with `error`. */
  fail(error: unknown): void {
    if (this.#phase === 'closed') return
    this.#failure = { error }
    this.close()
  }

  /** Releases the memory that others need, unless the cursor waits for something other than its consumer. */
  #releaseMemory(reason: HeadwaterError): void {
    if (this.#abandon !== undefined) return
    if (this.onEvicted === undefined) {
      this.#history.forget()
      this.#share.correct(0)
    } else {
      this.fail(reason)
      this.onEvicted()
    }
  }

  async #step<Result>(work: () => Promise<Result | undefined>): Promise<Result | undefined> {
    try {
      const result = await work()
      if (result !== undefined || this.#failure === undefined) return result
    } catch (error) {
      this.fail(error)
      // A failure of work that a closed read left behind does not matter.
      if (this.#failure === undefined) return undefined
    }
    const { error } = this.#failure!
    this.#failure = undefined
    throw error
  }

  /** Resolves to `LATER` if it has reached the tail and `#receive` is set. */
  async #catchUp(): Promise<ReadEvent | undefined | typeof LATER> {
    const event = await this.#step(async () => {
      while (this.#phase === 'history') {
        const event = await this.#nextInHistory()
        if (event !== undefined) return event
      }
      return undefined
    })
    return event ?? this.#awaited(this.#follow())
  }

  async #nextInHistory(): Promise<ReadEvent | undefined> {
    const batch = await this.#nextBatchInHistory()
    if (batch !== undefined) return { kind: 'batch', batch }
    if (this.#isClosed()) return undefined
    return this.#onHistoryEnd()
  }

  #admit(): MaybePromise<void> {
    const { position, limits, deliveredBytes } = this.#progress
    // A read that has reached its end only asks whether the tail has moved.
    if (position >= this.#end) return undefined
    const bytes = expectedBytes(this.#end - position, limits, this.#log.recordBytes)
    return this.#options.budget.scheduler.admit(bytes, deliveredBytes, () => this.#isClosed())
  }

  async #nextBatchInHistory(): Promise<ReadBatch | undefined> {
    const admitted = this.#admit()
    if (isPromise(admitted)) {
      await this.#unlessClosed(admitted)
      if (this.#isClosed()) return undefined
    }
    const next = await this.#unlessClosed(this.#history.next(this.#end))
    // What was read may continue another history than what was delivered.
    const isGone = this.#log.isStale && !(await this.#unlessClosed(this.#log.refresh()))
    if (next === undefined || this.#isClosed()) return undefined
    if (isGone || this.#log.loss !== undefined) throw this.#log.loss ?? deletedUnderReadError()
    const { batch, ended } = next
    if (batch === undefined) {
      if (ended) this.close()
      return undefined
    }
    this.#deliver(batch, ended)
    const { tail } = this
    return batch.lastSeqNum + 1 === tail.seqNum ? batch.withTail(tail) : batch
  }

  /**
   * Continues to a tail that has moved, ends the read, or starts to follow. The heartbeat of a new follower
   * is made together with the comparison of the tail: a turn later, its tail may be that of an append that
   * was not delivered.
   */
  async #onHistoryEnd(): Promise<Heartbeat | undefined> {
    const follows = this.#plan.waitMs > 0
    if (!follows && !this.#plan.chasesTail) {
      this.close()
      return undefined
    }
    // Follow, then read the tail: an append in between is seen one way or the other.
    if (follows) this.#live.follow()
    const exists = await this.#unlessClosed(this.#log.refresh())
    if (this.#isClosed()) return undefined
    if (!exists) throw this.#log.loss ?? deletedUnderReadError()
    const { tail } = this.#log.head
    if (tail.seqNum > this.#end) this.#end = tail.seqNum
    else if (follows && this.#live.begin()) {
      this.#history.forget()
      this.#log.forgetRead()
      this.#phase = 'live'
      return this.#live.heartbeat()
    } else this.close()
    return undefined
  }

  /**
   * The next event at the tail; undefined if the read is closed. While nothing is due, `#receive` is to be
   * set. Never throws.
   */
  #follow(): MaybePromise<ReadEvent | undefined> | typeof LATER {
    if (this.#phase === 'closed') return this.#over()
    try {
      const step = this.#live.next()
      if (step === 'idle') {
        this.#share.correct(0)
        this.#live.onChange(this.#onChange)
        return LATER
      }
      if (typeof step === 'string' || 'kind' in step) return this.#take(step)
      return this.#takeLater(step)
    } catch (error) {
      return this.#step(() => Promise.reject(error))
    }
  }

  readonly #onChange = (): void => {
    const receive = this.#receive!
    const event = this.#follow()
    if (event !== LATER) receive(event)
  }

  /** Waits with a promise if there is no callback. */
  #awaited(event: MaybePromise<ReadEvent | undefined> | typeof LATER): typeof event {
    if (event !== LATER || this.#receive !== undefined) return event
    return new Promise((resolve) => {
      this.#receive = resolve
    })
  }

  /** How a closed read reports that it is over. */
  #over(): Promise<undefined> {
    return this.#step(async () => undefined)
  }

  /** Takes the step. With `isHeld`, its memory is reserved already. */
  #take(step: LiveStep, isHeld = false): MaybePromise<ReadEvent | undefined> {
    if (step === 'ended') {
      this.close()
      return undefined
    }
    if (step === 'behind') {
      this.#end = this.#log.head.tail.seqNum
      this.#phase = 'history'
      this.#receive = undefined
      return this.#catchUp() as Promise<ReadEvent | undefined>
    }
    if (step.kind === 'heartbeat') return step
    const { meteredBytes, count } = step.batch
    const held = isHeld
      ? undefined
      : this.#share.hold(readCost(meteredBytes, count), meteredBytes <= SMALL_BYTES)
    if (held !== undefined)
      return this.#takeLater(
        held.then(() => step),
        true,
      )
    this.#deliver(step.batch, step.isLast)
    return step
  }

  async #takeLater(opening: Promise<LiveStep>, isHeld?: boolean): Promise<ReadEvent | undefined> {
    const step = await this.#step(() => this.#unlessClosed(opening))
    return step === undefined || this.#isClosed() ? this.#over() : this.#take(step, isHeld)
  }

  #deliver(batch: ReadBatch, isLast: boolean): void {
    const admitsMore = this.#progress.delivered(batch)
    this.#options.meter?.delivered(this.#log.document.basin, batch.meteredBytes)
    if (isLast || !admitsMore) this.close()
    else this.#live.delivered()
  }

  /**
   * Settles as `work` does, or resolves to undefined as soon as the read is closed: a later result is
   * dropped.
   */
  #unlessClosed<Result>(work: Promise<Result>): Promise<Result | undefined> {
    return new Promise((resolve, reject) => {
      // The function itself: a closure would keep every result in memory until a full garbage collection.
      this.#abandon = resolve
      if (this.#isClosed()) resolve(undefined)
      work.then(
        (result) => {
          this.#abandon = undefined
          resolve(result)
        },
        (error: unknown) => {
          this.#abandon = undefined
          reject(error)
        },
      )
    })
  }

  #isClosed(): boolean {
    return this.#phase === 'closed'
  }
}
