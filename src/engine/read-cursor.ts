import { heartbeatGapMs, waitDeadline } from '../core/follow.ts'
import { admit, admitsAll, afterDelivering, isExhausted } from '../core/read-limits.ts'
import type { ReadPlan } from '../core/read-plan.ts'
import type { StreamPosition } from '../model/position.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'
import { BlockSource } from './block-source.ts'
import { CatchUp } from './catch-up.ts'
import type { EngineContext } from './context.ts'
import type { BlockOpener } from './encryption/block-opener.ts'
import { isPromise } from './encryption/cipher-suite.ts'
import { deletedUnderReadError } from './errors.ts'
import { type LiveBatch, withData } from './live-tail.ts'
import { macrotask } from './macrotask.ts'
import type { StreamLog } from './stream-log.ts'

export type ReadEvent =
  | { readonly kind: 'batch'; readonly batch: ReadBatch }
  /** A sign of life while waiting: the time (milliseconds) and the tail (wire-behaviour.md 5.9). */
  | { readonly kind: 'heartbeat'; readonly timestamp: number; readonly tail: StreamPosition }

/** After how many stored batches a read lets other work have its turn. */
const TURN_AFTER_BATCHES = 64

/**
 * One open read. It holds a place in a log and moves only when `next` is called, so its consumer sets the pace. First it catches up from
 * the storage, then, if the plan waits, it follows live; when it falls behind, it catches up again. Closing frees everything at once.
 */
export class ReadCursor {
  readonly #engine: EngineContext
  readonly #log: StreamLog
  readonly #plan: ReadPlan
  readonly #catchUp: CatchUp
  readonly #opener: BlockOpener | undefined
  readonly #heartbeats: boolean
  readonly #onDelivered: ((meteredBytes: number) => void) | undefined
  readonly #onClose: () => void
  #limits: ReadPlan['limits']
  /** Catching up goes to here: the tail when the read was opened or when it last fell behind. */
  #end: number
  #phase: 'catching-up' | 'following' | 'done' = 'catching-up'
  #deadline: number | undefined
  #nextHeartbeatAt = Number.POSITIVE_INFINITY
  #unfollow: (() => void) | undefined
  #wake: (() => void) | undefined
  /** Ends the wait for a storage or a cipher when the read is closed. */
  #leave: (() => void) | undefined
  #failure: { readonly error: unknown } | undefined
  #storedBatches = 0
  #timer: { readonly at: number; readonly cancel: () => void } | undefined

  constructor(
    engine: EngineContext,
    log: StreamLog,
    plan: ReadPlan,
    options: {
      readonly heartbeats: boolean
      /** Undefined on a plain stream. */
      readonly opener: BlockOpener | undefined
      /** Told of every batch. */
      readonly onDelivered: ((meteredBytes: number) => void) | undefined
      readonly onClose: () => void
    },
  ) {
    this.#engine = engine
    this.#log = log
    this.#plan = plan
    this.#limits = plan.limits
    this.#heartbeats = options.heartbeats
    this.#end = log.head.tail.seqNum
    this.#opener = options.opener
    const source = new BlockSource(engine, log.document.logId)
    this.#catchUp = new CatchUp(source, options.opener, engine.settings.clock.now(), plan.floor)
    this.#onDelivered = options.onDelivered
    this.#onClose = options.onClose
  }

  /**
   * Finds the start. Resolves to whether there is a stored record to deliver; undefined when the read was ended meanwhile. Called once, before
   * `next`.
   */
  locate(): Promise<boolean | undefined> {
    return this.#unlessClosed(this.#catchUp.locate(this.#plan, this.#end))
  }

  /**
   * The next batch or heartbeat; undefined at the end. One call at a time. Rejects with `unavailable` when the stream or the engine goes away,
   * with `storage` when the storage fails; then the cursor is closed.
   */
  async next(): Promise<ReadEvent | undefined> {
    return this.#untilClosed(async () => {
      while (this.#phase !== 'done') {
        const event = this.#phase === 'catching-up' ? await this.#catchUpOnce() : await this.#nextLive()
        if (event !== undefined) return event
      }
      return undefined
    })
  }

  /** The next batch of what was stored when the read was opened; undefined when there is no more of it. Does not wait. */
  async nextStored(): Promise<ReadBatch | undefined> {
    return this.#untilClosed(async () => (this.#phase === 'catching-up' ? this.#stored() : undefined))
  }

  /** Ends the read; a pending `next` resolves to undefined, whatever it waits for. May be called at any time and more than once. */
  close(): void {
    if (this.#phase === 'done') return
    this.#phase = 'done'
    this.#unfollow?.()
    this.#timer?.cancel()
    this.#wake?.()
    this.#leave?.()
    this.#catchUp.close()
    this.#onClose()
  }

  /** Ends the read; the pending or else the next `next` rejects with this. */
  fail(error: unknown): void {
    if (this.#phase === 'done') return
    this.#failure = { error }
    this.close()
  }

  async #untilClosed<Result>(step: () => Promise<Result | undefined>): Promise<Result | undefined> {
    try {
      const result = await step()
      if (result !== undefined || this.#failure === undefined) return result
    } catch (error) {
      // A read that was ended has nothing more to say, even if what was under way then fails.
      if (this.#isClosed() && this.#failure === undefined) return undefined
      if (!this.#isClosed()) this.fail(error)
    }
    const { error } = this.#failure!
    this.#failure = undefined
    throw error
  }

  async #stored(): Promise<ReadBatch | undefined> {
    const caughtUp = await this.#unlessClosed(this.#catchUp.next(this.#end, this.#limits))
    if (caughtUp === undefined || this.#isClosed()) return undefined
    const { batch, ended } = caughtUp
    if (batch !== undefined) this.#deliver(batch, ended)
    else if (ended) this.close()
    return batch
  }

  async #catchUpOnce(): Promise<ReadEvent | undefined> {
    // A storage that answers at once must not keep timers, aborts and sockets from their turn.
    if (++this.#storedBatches % TURN_AFTER_BATCHES === 0) await macrotask()
    const batch = await this.#stored()
    if (batch !== undefined) return { kind: 'batch', batch }
    if (this.#isClosed()) return undefined
    await this.#onCaughtUp()
    return this.#phase === 'following' ? this.#heartbeat() : undefined
  }

  /** The end of the stored records is reached: goes on to a tail that has moved, ends, or follows. */
  async #onCaughtUp(): Promise<void> {
    const follows = this.#plan.waitMs > 0
    if (!follows && !this.#plan.chasesTail) {
      this.close()
      return
    }
    // Subscribe, then look at the tail: what is appended in between is seen in one way or the other.
    if (follows) this.#follow()
    const exists = await this.#unlessClosed(this.#log.refresh())
    if (this.#isClosed()) return
    if (!exists) throw deletedUnderReadError()
    const { tail } = this.#log.head
    if (tail.seqNum > this.#end) {
      this.#end = tail.seqNum
      return
    }
    if (!follows) {
      this.close()
      return
    }
    const now = this.#engine.settings.clock.now()
    this.#deadline ??= waitDeadline(now, this.#plan.waitMs)
    if (now >= this.#deadline) this.close()
    else this.#phase = 'following'
  }

  async #nextLive(): Promise<ReadEvent | undefined> {
    const { position } = this.#catchUp
    const live = this.#log.live.at(position)
    if (live !== undefined)
      return this.#opener === undefined
        ? this.#deliverLive(live, live.batch)
        : this.#openLive(this.#opener, live)
    if (this.#log.isDeleted) throw deletedUnderReadError()
    if (position < this.#log.head.tail.seqNum) {
      this.#end = this.#log.head.tail.seqNum
      this.#phase = 'catching-up'
      return undefined
    }
    const now = this.#engine.settings.clock.now()
    if (now >= this.#deadline!) {
      this.close()
      return undefined
    }
    if (now >= this.#nextHeartbeatAt) return this.#heartbeat()
    await this.#wait()
    return undefined
  }

  /** Opens what the limits admit, and delivers it if the read is still open then. */
  async #openLive(opener: BlockOpener, live: LiveBatch): Promise<ReadEvent | undefined> {
    const { firstSeqNum, endSeqNum, sealed } = live
    if (this.#admitsAll(live)) {
      const opening = opener.openLive(live)
      const batch = isPromise(opening) ? await this.#unlessClosed(opening) : opening
      return batch === undefined || this.#isClosed() ? undefined : this.#deliverLive(live, batch)
    }
    const opening = opener.open(sealed!, { from: firstSeqNum, endSeqNum, limits: this.#limits })
    const block = isPromise(opening) ? await this.#unlessClosed(opening) : opening
    if (block !== undefined && !this.#isClosed()) return this.#deliverLive(live, withData(live, block.data))
    this.close()
    return undefined
  }

  #admitsAll({ batch, lastTimestamp }: LiveBatch): boolean {
    const { count, meteredBytes } = batch
    return admitsAll(this.#limits, { count, meteredBytes, lastTimestamp })
  }

  #deliverLive(live: LiveBatch, batch: ReadBatch): ReadEvent | undefined {
    this.#catchUp.skipTo(live.endSeqNum)
    if (this.#admitsAll(live)) {
      this.#deliver(batch, false)
      return { kind: 'batch', batch }
    }
    const admitted = admit(this.#limits, batch.records)
    if (admitted.count === 0) {
      this.close()
      return undefined
    }
    const records = batch.records.slice(0, admitted.count)
    const summary = { ...admitted, lastSeqNum: records.at(-1)!.seqNum }
    const prefix = new ReadBatch(RecordBatch.ofRecords(records), summary, batch.tail)
    this.#deliver(prefix, true)
    return { kind: 'batch', batch: prefix }
  }

  #deliver(batch: ReadBatch, isLast: boolean): void {
    this.#limits = afterDelivering(this.#limits, batch.count, batch.meteredBytes)
    this.#onDelivered?.(batch.meteredBytes)
    if (isLast || isExhausted(this.#limits)) {
      this.close()
      return
    }
    const now = this.#engine.settings.clock.now()
    if (this.#plan.waitMs > 0) this.#deadline = waitDeadline(now, this.#plan.waitMs)
    this.#postponeHeartbeat(now)
  }

  #heartbeat(): ReadEvent | undefined {
    if (!this.#heartbeats) return undefined
    const timestamp = this.#engine.settings.clock.now()
    this.#postponeHeartbeat(timestamp)
    return { kind: 'heartbeat', timestamp, tail: this.#log.head.tail }
  }

  #postponeHeartbeat(now: number): void {
    if (this.#heartbeats) this.#nextHeartbeatAt = now + heartbeatGapMs(this.#engine.settings.random())
  }

  #follow(): void {
    if (this.#unfollow !== undefined) return
    this.#unfollow = this.#log.live.follow()
    this.#engine.logs.watch()
  }

  /** Until something was appended, the deadline or the next heartbeat is due, or the cursor is closed. */
  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#log.live.onNext(() => this.#wake?.())
      this.#wake = () => {
        this.#wake = undefined
        cancel()
        resolve()
      }
      this.#armTimer(Math.min(this.#deadline!, this.#nextHeartbeatAt))
    })
  }

  /** Deliveries move the times that are waited for; a timer that then comes too early is set anew when it fires, not at each delivery. */
  #armTimer(at: number): void {
    if (at === Number.POSITIVE_INFINITY || (this.#timer !== undefined && this.#timer.at <= at)) return
    this.#timer?.cancel()
    const { clock } = this.#engine.settings
    const cancel = clock.schedule(at - clock.now(), () => {
      this.#timer = undefined
      this.#wake?.()
    })
    this.#timer = { at, cancel }
  }

  /** Settles as the work does, or resolves to undefined as soon as the read is closed: what comes later is dropped. */
  async #unlessClosed<Result>(work: Promise<Result>): Promise<Result | undefined> {
    try {
      return await new Promise<Result | undefined>((resolve, reject) => {
        if (this.#isClosed()) resolve(undefined)
        this.#leave = () => resolve(undefined)
        work.then(resolve, reject)
      })
    } finally {
      this.#leave = undefined
    }
  }

  #isClosed(): boolean {
    return this.#phase === 'done'
  }
}
