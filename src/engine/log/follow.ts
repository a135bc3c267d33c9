import { deletedUnderReadError } from '../../api/read-session.ts'
import type { ReadEvent, RecordCursor } from '../../api/record-cursor.ts'
import {
  admitsAll,
  afterDelivering,
  isExhausted,
  type ReadLimits,
  type ReadPlan,
} from '../../core/read-plan.ts'
import { blockExpiresAt, isBlockExpired } from '../../core/retention.ts'
import { streamTailOf } from '../../core/sequence.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { StreamTail } from '../../model/position.ts'
import { andThen, isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'
import type { Follower, LiveBatch } from './live-tail.ts'
import { type ReadBudget, type ReadShare, readCost, SMALL_BYTES } from './read-budget.ts'
import { HistoryReader, partOf } from './read-history.ts'
import type { RecordReader } from './record-codec.ts'
import type { StreamLog } from './stream-log.ts'
import { WaitTimer, type WaitTimerOptions } from './wait-timer.ts'

export interface ReadCursorOptions extends WaitTimerOptions {
  readonly reader: RecordReader
  readonly budget: ReadBudget
  readonly meter?: { delivered(basin: string, meteredBytes: number): void } | undefined
  /** Called once, when the read ends. */
  readonly onClose: () => void
}

/** Encoding a record takes about as long as writing so many bytes. */
const RECORD_BYTES = 64

/** An event, the end of the read, or what to do for the next event. */
type Step = ReadEvent | undefined | 'go on' | 'wait'

/**
 * One open read. It moves only when `next` is called, so its consumer sets the pace. It reads history from
 * the storage and then, if the plan waits, follows live: it delivers appends as they become durable. When it
 * falls behind, it reads history again. Closing frees everything.
 */
export class ReadCursor implements RecordCursor, Follower {
  /**
   * Ends the read when others need the memory of a consumer that pauses: called before the error is reported.
   * If undefined, the read drops what it holds, and continues when its consumer asks again.
   */
  onEvicted: (() => void) | undefined
  readonly #log: StreamLog
  readonly #plan: ReadPlan
  readonly #options: ReadCursorOptions
  readonly #history: HistoryReader
  readonly #timer: WaitTimer
  readonly #share: ReadShare
  #phase: 'history' | 'live' | 'closed' = 'history'
  /** The sequence number of the next record to deliver. */
  #position: number
  #limits: ReadLimits
  /** The end of the history: the tail when the read was opened or when it last fell behind. */
  #end: number
  /** The history that was read since the read has waited for its turn, in bytes of equal work. */
  #sinceTurn = 0
  #unfollow: (() => void) | undefined
  /** Settles the promise of the call that is under way. */
  #call: { resolve(event?: ReadEvent): void; reject(error: unknown): void } | undefined
  /** Whether a call waits at the tail. Set by this class only. */
  isWaiting = false
  #failure: { readonly error: unknown } | undefined

  constructor(log: StreamLog, plan: ReadPlan, options: ReadCursorOptions) {
    const { reader, clock, budget } = options
    this.#log = log
    this.#plan = plan
    this.#options = options
    this.#position = plan.floor
    this.#limits = plan.limits
    this.#end = log.head.tail.seqNum
    this.#share = budget.open((reason) => this.#giveBack(reason))
    const { extensions } = log.head
    const openedAt = clock.now()
    this.#history = new HistoryReader(log, {
      reader,
      share: this.#share,
      isExpired: (block) => isBlockExpired(blockExpiresAt(block, extensions), openedAt),
    })
    this.#timer = new WaitTimer(plan.waitMs, options, () => this.wake())
  }

  /** Promises that what `next` resolves to is not used any more once `next` is called again. */
  reuseMemory(): void {
    this.#history.reuseMemory()
  }

  /** The tail of the stream, as far as is known. */
  get tail(): StreamTail {
    return streamTailOf(this.#log.head)
  }

  /** The stream that is read, the sequence number of the next record to deliver, and the tail. */
  get state() {
    const { document, head } = this.#log
    const { basin, name: stream } = document
    return { basin, stream, position: this.#position, tail: head.tail.seqNum }
  }

  /**
   * Moves to the start of the read. Resolves to whether there is a stored record to deliver; to undefined if
   * the read was closed meanwhile. Called once, before `next`.
   */
  locate(): Promise<boolean | undefined> {
    return this.#unlessClosed(async () => {
      this.#position = await this.#history.locate(this.#plan, this.#end)
      return this.#position < this.#end
    })
  }

  /**
   * The next batch or heartbeat; undefined at the end. One call at a time. A rejection closes the cursor:
   * `stream_deleted` when the stream is deleted, `closed` when the engine closes, `storage` when the storage
   * fails.
   */
  next(): Promise<ReadEvent | undefined> {
    if (this.#isClosed()) return this.#over()
    return new Promise((resolve, reject) => {
      this.#share.resume()
      this.#call = { resolve, reject }
      this.#advance()
    })
  }

  /** The next batch of the records stored when the read was opened; undefined at their end. Does not wait. */
  nextStored(): Promise<ReadBatch | undefined> {
    return this.#unlessClosed(() => this.#nextBatchOfHistory())
  }

  /** Ends the read. A pending `next` resolves to undefined. May be called at any time, more than once. */
  close(): void {
    if (this.#isClosed()) return
    this.#release()
    this.#call?.resolve()
    this.#call = undefined
  }

  /** Ends the read. The pending `next`, or else the next one, rejects with `error`. */
  fail(error: unknown): void {
    if (this.#isClosed()) return
    this.#release()
    if (this.#call === undefined) this.#failure = { error }
    else this.#call.reject(error)
  }

  /** Sends a heartbeat now if the read waits at the tail, unless it has none. */
  beat(): void {
    this.#timer.beat()
    this.wake()
  }

  /** Called after appends, and by the timer. */
  wake(): void {
    if (!this.isWaiting) return
    this.isWaiting = false
    this.#advance()
  }

  /**
   * Settles the call of `next`, now or when `wake` goes on. Not an async function, which would make several
   * promises for each event of each follower.
   */
  #advance(): void {
    // It may have been closed between a step and this turn.
    if (this.#isClosed()) return
    try {
      let step: MaybePromise<Step> = 'go on'
      while (step === 'go on') step = this.#phase === 'history' ? this.#catchUp() : this.#nextLive()
      if (step === 'wait') this.isWaiting = true
      else if (!isPromise(step)) this.#settle(step)
      else {
        step.then(
          (event) => (event === 'go on' ? this.#advance() : this.#settle(event as ReadEvent | undefined)),
          (error: unknown) => this.fail(error),
        )
      }
    } catch (error) {
      this.fail(error)
    }
  }

  /** Resolves the call, unless the read was closed meanwhile. */
  #settle(event: ReadEvent | undefined): void {
    const call = this.#call
    this.#call = undefined
    this.#share.pause()
    call?.resolve(event)
  }

  /** The next event at the tail, if there is one. */
  #nextLive(): MaybePromise<Step> {
    const { head, isDeleted, loss } = this.#log
    const isBehind = this.#position < head.tail.seqNum
    const live = isBehind ? this.#log.liveBatchAt(this.#position) : undefined
    if (live !== undefined) return this.#takeLive(live)
    if (isDeleted) throw loss ?? deletedUnderReadError()
    if (isBehind) {
      // The next record is in the storage only.
      this.#end = head.tail.seqNum
      this.#phase = 'history'
      return 'go on'
    }
    const due = head.writeState?.closed ? 'end' : this.#timer.due()
    if (due === 'heartbeat') return this.#heartbeat()
    if (due === 'end') return this.#release()
    this.#share.resize(0)
    this.#timer.schedule()
    return 'wait'
  }

  #takeLive(live: LiveBatch): MaybePromise<ReadEvent | undefined> {
    const { count, meteredBytes } = live.batch
    const held = this.#share.acquire(readCost(meteredBytes, count), meteredBytes <= SMALL_BYTES)
    const opened = andThen(held, () => this.#openLive(live))
    return andThen(opened, (batch) => {
      if (this.#isClosed()) return undefined
      if (batch === undefined) return this.#release()
      this.#position = live.block.endSeqNum
      this.#deliver(batch, batch.count < count)
      return { kind: 'batch', batch }
    })
  }

  /** The records of a live batch that the limits admit. Undefined if that is none. */
  #openLive(live: LiveBatch): MaybePromise<ReadBatch | undefined> {
    const { reader } = this.#options
    const limits = this.#limits
    const { firstSeqNum, endSeqNum, lastTimestamp } = live.block
    const { count, meteredBytes } = live.batch
    if (admitsAll(limits, { count, meteredBytes, lastTimestamp })) return reader.openLive(live)
    const opening = reader.open(live.block, { from: firstSeqNum, endSeqNum, limits })
    return andThen(opening, (block) => {
      const part = block && partOf(block, firstSeqNum, endSeqNum, limits)
      return part && part.count > 0
        ? new ReadBatch(new RecordBatch(undefined, [part.data]), part, live.batch.tail)
        : undefined
    })
  }

  /**
   * The next event on the way to the tail, or that it is reached. The heartbeat of a new follower is made
   * together with the comparison of the tail: a turn later, its tail may be that of an append that was not
   * delivered.
   */
  async #catchUp(): Promise<Step> {
    const { waitMs, chasesTail } = this.#plan
    for (;;) {
      const batch = await this.#nextBatchOfHistory()
      if (batch !== undefined) return { kind: 'batch', batch }
      if (this.#isClosed()) return undefined
      if (waitMs === 0 && !chasesTail) break
      // Follow, then read the tail: an append in between is seen one way or the other.
      if (waitMs > 0) this.#unfollow ??= this.#log.follow(this)
      const exists = await this.#log.refresh()
      if (this.#isClosed()) return undefined
      if (!exists) throw this.#log.loss ?? deletedUnderReadError()
      const { tail } = this.#log.head
      if (tail.seqNum <= this.#end) {
        if (waitMs === 0 || !this.#timer.begin()) break
        this.#history.forget()
        this.#share.resize(0)
        this.#phase = 'live'
        return this.#heartbeat() ?? 'go on'
      }
      this.#end = tail.seqNum
    }
    return this.#release()
  }

  async #nextBatchOfHistory(): Promise<ReadBatch | undefined> {
    const { batch, next, ended } = await this.#history.next(this.#position, this.#end, this.#limits)
    const bytes = this.#sinceTurn + (batch?.meteredBytes ?? 0)
    const needsTurn = bytes > SMALL_BYTES
    this.#sinceTurn = RECORD_BYTES * (batch?.count ?? 0) + (needsTurn ? 0 : bytes)
    if (needsTurn) await this.#options.budget.turnFor(bytes)
    // What was read may continue another history than what was delivered.
    const isGone = this.#log.isDeleted || (this.#log.isStale && !(await this.#log.refresh()))
    if (this.#isClosed()) return undefined
    if (isGone) throw this.#log.loss ?? deletedUnderReadError()
    this.#position = next
    if (batch === undefined) return ended ? this.#release() : undefined
    this.#deliver(batch, ended)
    const { tail } = this
    return batch.lastSeqNum + 1 === tail.seqNum ? batch.withTail(tail) : batch
  }

  #deliver({ count, meteredBytes }: ReadBatch, isLast: boolean): void {
    this.#limits = afterDelivering(this.#limits, count, meteredBytes)
    this.#options.meter?.delivered(this.#log.document.basin, meteredBytes)
    if (isLast || isExhausted(this.#limits)) this.#release()
    else this.#timer.postpone()
  }

  /** A heartbeat to send now; undefined for a read without heartbeats. */
  #heartbeat(): ReadEvent | undefined {
    const timestamp = this.#timer.heartbeat()
    return timestamp === undefined ? undefined : { kind: 'heartbeat', timestamp, tail: this.tail }
  }

  /** The consumer has stalled, and others need the memory. */
  #giveBack(reason: HeadwaterError): void {
    if (this.onEvicted === undefined) {
      this.#history.forget()
      this.#share.resize(0)
    } else {
      this.fail(reason)
      this.onEvicted()
    }
  }

  /**
   * Settles as the work does, or resolves to undefined as soon as the read is closed: a later result is
   * dropped. A failure closes the read.
   */
  #unlessClosed<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#isClosed()) return this.#over()
    return new Promise((resolve, reject) => {
      this.#share.resume()
      this.#call = { resolve: () => resolve(undefined), reject }
      work().then(
        (result) => {
          this.#call = undefined
          this.#share.pause()
          resolve(result)
        },
        (error: unknown) => this.fail(error),
      )
    })
  }

  #release(): undefined {
    this.#phase = 'closed'
    this.isWaiting = false
    this.#unfollow?.()
    this.#timer.cancel()
    this.#history.forget()
    this.#share.close()
    this.#options.onClose()
    return undefined
  }

  #isClosed(): boolean {
    return this.#phase === 'closed'
  }

  /** How a closed read reports that it is over. */
  async #over(): Promise<undefined> {
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure.error
  }
}
