import { deletedUnderReadError } from '../../api/errors.ts'
import type { Heartbeat } from '../../api/record-cursor.ts'
import { admit, admitsAll, heartbeatGapMs } from '../../core/read-plan.ts'
import { streamTailOf } from '../../core/sequence.ts'
import type { Clock } from '../../runtime/clock.ts'
import { andThen, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'
import { type Follower, type LiveBatch, withData } from './live-tail.ts'
import type { ReadProgress } from './read-progress.ts'
import type { RecordReader } from './record-codec.ts'
import type { StreamLog } from './stream-log.ts'

interface LiveBatchStep {
  readonly kind: 'batch'
  readonly batch: ReadBatch
  readonly isLast: boolean
}

export type LiveStep =
  | LiveBatchStep
  | Heartbeat
  /** The next record is in the storage only. */
  | 'behind'
  /** The limits or the wait are used up, or the stream is closed. */
  | 'ended'

export interface LivePhaseOptions {
  readonly clock: Clock
  /** Spreads the heartbeats; in [0, 1). */
  readonly random: () => number
  readonly heartbeats: boolean | 'first'
}

/** Follows a log at its tail: delivers appends as they become durable, and waits in between. */
export class LivePhase implements Follower {
  readonly #log: StreamLog
  readonly #reader: RecordReader
  readonly #progress: ReadProgress
  /** How long to wait for the next record, in milliseconds: 0 is not at all, Infinity forever. */
  readonly #waitMs: number
  readonly #options: LivePhaseOptions
  /**
   * The end of the wait (docs/protocol.md "Waiting"): `#waitMs` after the last delivered batch or, if none
   * was delivered, after first reaching the tail. Heartbeats do not postpone it. It may
   * be up to twice as late if the clock is set back after a delivery.
   */
  #deadline: number | undefined
  /** The time between a delivery and the next heartbeat, in milliseconds; chosen again for each heartbeat. */
  #heartbeatGapMs = Number.POSITIVE_INFINITY
  #nextHeartbeatAt = Number.POSITIVE_INFINITY
  #unfollow: (() => void) | undefined
  #onChange: (() => void) | undefined
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  /** Whether there was a delivery since the timer was set. */
  #isPostponed = false

  constructor(
    log: StreamLog,
    reader: RecordReader,
    progress: ReadProgress,
    waitMs: number,
    options: LivePhaseOptions,
  ) {
    this.#log = log
    this.#reader = reader
    this.#progress = progress
    this.#waitMs = waitMs
    this.#options = options
  }

  /**
   * Makes the log keep its latest appends for this read. Call it before the tail is read for the last time.
   */
  follow(): void {
    this.#unfollow ??= this.#log.follow(this)
  }

  /** Returns false if the wait is over already. */
  begin(): boolean {
    const now = this.#options.clock.now()
    this.#deadline ??= now + this.#waitMs
    return now < this.#deadline
  }

  /** The next step; `'idle'` if nothing is due before `onChange` calls back. */
  next(): MaybePromise<LiveStep> | 'idle' {
    const { position } = this.#progress
    const { tail, writeState } = this.#log.head
    const isBehind = position < tail.seqNum
    const live = isBehind ? this.#log.liveBatchAt(position) : undefined
    if (live !== undefined) return this.#open(live)
    if (this.#log.isDeleted) throw this.#log.loss ?? deletedUnderReadError()
    if (isBehind) return 'behind'
    if (writeState?.closed) return 'ended'
    const now = this.#options.clock.now()
    // A clock that was set back delays nothing for longer than it takes.
    this.#deadline = Math.min(this.#deadline!, now + this.#waitMs)
    this.#nextHeartbeatAt = Math.min(this.#nextHeartbeatAt, now + this.#heartbeatGapMs)
    if (now >= this.#deadline) return 'ended'
    if (now >= this.#nextHeartbeatAt) return this.heartbeat()!
    return 'idle'
  }

  /** Calls back once: after an append, at the deadline, when the next heartbeat is due, or on `close`. */
  onChange(callback: () => void): void {
    this.#onChange = callback
    const at = Math.min(this.#deadline!, this.#nextHeartbeatAt)
    // A timer that is early is kept: deliveries postpone its deadline, and it is set again when it fires.
    if (at >= (this.#timer?.at ?? Number.POSITIVE_INFINITY)) return
    this.#timer?.cancel()
    const { clock } = this.#options
    this.#isPostponed = false
    const cancel = clock.schedule(at - clock.now(), () => {
      this.#timer = undefined
      // If the clock was set back meanwhile, nothing is due later for that; unless a delivery has postponed
      // what is due, perhaps by the clock as it is now.
      const early = this.#isPostponed ? 0 : Math.max(at - clock.now(), 0)
      this.#deadline! -= early
      this.#nextHeartbeatAt -= early
      this.wake()
    })
    this.#timer = { at, cancel }
  }

  /** Postpones the deadline and the next heartbeat, after the delivery of a batch. */
  delivered(): void {
    if (this.#waitMs === 0) return
    const now = this.#options.clock.now()
    this.#deadline = now + this.#waitMs
    this.#nextHeartbeatAt = now + this.#heartbeatGapMs
    this.#isPostponed = true
  }

  /** Returns a heartbeat to send now; undefined for a read without heartbeats. */
  heartbeat(): Heartbeat | undefined {
    const { heartbeats, clock, random } = this.#options
    if (!heartbeats) return undefined
    const timestamp = clock.now()
    if (heartbeats === true) this.#heartbeatGapMs = heartbeatGapMs(random())
    this.#nextHeartbeatAt = timestamp + this.#heartbeatGapMs
    return { kind: 'heartbeat', timestamp, tail: streamTailOf(this.#log.head) }
  }

  /** Makes a heartbeat due at once, unless the read has none. */
  beat(): void {
    if (!this.#options.heartbeats) return
    this.#nextHeartbeatAt = Number.NEGATIVE_INFINITY
    this.wake()
  }

  close(): void {
    this.#unfollow?.()
    this.#timer?.cancel()
    this.wake()
  }

  get isWaiting(): boolean {
    return this.#onChange !== undefined
  }

  wake(): void {
    const callback = this.#onChange
    this.#onChange = undefined
    callback?.()
  }

  #open(live: LiveBatch): MaybePromise<LiveStep> {
    const { limits, isUnlimited } = this.#progress
    const { firstSeqNum, endSeqNum, lastTimestamp } = live.block
    const { count, meteredBytes } = live.batch
    if (isUnlimited || admitsAll(limits, { count, meteredBytes, lastTimestamp })) {
      const batch = this.#reader.openLive(live)
      this.#progress.position = endSeqNum
      if (batch instanceof ReadBatch) return { kind: 'batch', batch, isLast: false }
      return batch.then((batch) => ({ kind: 'batch', batch, isLast: false }))
    }
    const opening = this.#reader.open(live.block, { from: firstSeqNum, endSeqNum, limits })
    return andThen(opening, (block) =>
      block === undefined ? 'ended' : this.#cut(withData(live, block.data)),
    )
  }

  /** Delivers the records of a batch that the limits admit. */
  #cut(batch: ReadBatch): LiveStep {
    const admitted = admit(this.#progress.limits, batch.records)
    if (admitted.count === 0) return 'ended'
    const records = batch.records.slice(0, admitted.count)
    const summary = { ...admitted, lastSeqNum: records.at(-1)!.seqNum }
    const prefix = new ReadBatch(new RecordBatch(records), summary, batch.tail)
    return { kind: 'batch', batch: prefix, isLast: true }
  }
}
