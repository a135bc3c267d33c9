import { HeadwaterError } from '../../model/errors.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import { ReadScheduler } from './read-scheduler.ts'

/** A read without progress for this long may be ended to free its memory, in milliseconds. */
const STALL_MS = 1_000
/** How long a new read waits behind reads in progress, in milliseconds. */
const WAIT_MAX_MS = 30_000
const CHECK_MS = 250

/**
 * Estimates the memory of a read that holds this many metered bytes and records: the stored blocks, and one
 * batch as it is sent, with about 64 bytes around each record.
 */
export function readCost(meteredBytes: number, count: number): number {
  return (
    meteredBytes + Math.min(meteredBytes, READ_METERED_BYTES_MAX) + 64 * Math.min(count, READ_RECORDS_MAX)
  )
}

/** The memory of one read. */
export interface ReadShare {
  /**
   * Replaces what the read holds with `bytes`. Returns a promise if that must wait for other reads; it never
   * settles once the share is closed.
   */
  hold(bytes: number): MaybePromise<void>
  /** Corrects the held bytes, without waiting. */
  correct(bytes: number): void
  /** Records that the consumer has finished the last batch. */
  moved(): void
  /** Returns everything. A second call does nothing. */
  close(): void
}

/**
 * The memory that the open reads of an engine hold together: blocks read from the storage, and batches that
 * their consumers have not finished. When it is used up, further reads wait, and those without progress for a
 * second are ended.
 */
export class ReadBudget {
  readonly scheduler = new ReadScheduler()
  readonly #limit: number
  readonly #clock: Clock
  #used = 0
  /** Of all open reads, including those that hold nothing. */
  readonly #shares = new Set<Share>()
  /** Reads that ask for their next batch. They precede new ones, until those have waited for too long. */
  readonly #moving = new Set<Waiter>()
  readonly #waiting = new Set<Waiter>()
  #cancelCheck: (() => void) | undefined

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  get used(): number {
    return this.#used
  }

  /** Whether more than half is used: reads should take little at a time. */
  get isShort(): boolean {
    return this.#used > this.#limit / 2
  }

  /** `end` is called with the reason if the read must give back its memory; it closes the share. */
  open(end: (reason: HeadwaterError) => void): ReadShare {
    const share = new Share(this, end)
    this.#shares.add(share)
    return share
  }

  /** @internal */
  hold(share: Share, bytes: number): MaybePromise<void> {
    if (share.isClosed) return undefined
    const moves = share.bytes > 0
    if (bytes === 0) {
      this.correct(share, 0)
      return undefined
    }
    share.since = this.#clock.now()
    this.#replace(share, 0)
    const waiters = moves ? this.#moving : this.#waiting
    const isFirst = moves ? this.#moving.size === 0 : this.#moving.size + this.#waiting.size === 0
    if (isFirst && this.#fits(bytes) && !this.#isOverdue()) {
      this.correct(share, bytes)
      return undefined
    }
    return new Promise((resolve) => {
      const waiter: Waiter = { share, bytes, since: share.since, resolve }
      share.leave = () => waiters.delete(waiter)
      waiters.add(waiter)
      this.#admit()
      this.#check()
    })
  }

  /** @internal Replaces what a share holds, without waiting. */
  correct(share: Share, bytes: number): void {
    this.#replace(share, bytes)
    if (this.#cancelCheck !== undefined) this.#admit()
  }

  #replace(share: Share, bytes: number): void {
    if (share.isClosed) return
    this.#used += bytes - share.bytes
    share.bytes = bytes
  }

  /** @internal */
  close(share: Share): void {
    share.leave?.()
    share.leave = undefined
    this.#replace(share, 0)
    this.#shares.delete(share)
    share.isClosed = true
    this.#admit()
  }

  /** @internal */
  moved(share: Share): void {
    share.since = this.#clock.now()
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#limit
  }

  #isOverdue(): boolean {
    const [oldest] = this.#waiting
    return oldest !== undefined && this.#clock.now() - oldest.since >= WAIT_MAX_MS
  }

  #admit(): void {
    for (;;) {
      const waiters = this.#moving.size === 0 || this.#isOverdue() ? this.#waiting : this.#moving
      const [next] = waiters
      if (next === undefined) {
        this.#cancelCheck?.()
        this.#cancelCheck = undefined
        return
      }
      if (!this.#fits(next.bytes)) return
      waiters.delete(next)
      const { share } = next
      share.leave = undefined
      share.since = this.#clock.now()
      this.#replace(share, next.bytes)
      next.resolve()
    }
  }

  /** Makes room for the waiting reads, now and at intervals. */
  #check(): void {
    if (this.#cancelCheck !== undefined) return
    this.#endStalled()
    if (this.#moving.size + this.#waiting.size === 0) return
    this.#cancelCheck = this.#clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined
      this.#check()
    })
  }

  /** Ends the reads that have stalled longest, as many as the waiting reads need. */
  #endStalled(): void {
    let needed = this.#used - this.#limit
    for (const { bytes } of [...this.#moving, ...this.#waiting]) needed += bytes
    const latest = this.#clock.now() - STALL_MS
    const stalled = [...this.#shares]
      .filter(({ bytes, since }) => bytes > 0 && since <= latest)
      .sort((a, b) => a.since - b.since)
    for (const share of stalled) {
      if (needed <= 0) return
      needed -= share.bytes
      share.end(this.#tooSlow())
    }
  }

  #tooSlow(): HeadwaterError {
    const limit = this.#limit.toLocaleString('en-US')
    return new HeadwaterError(
      'rate_limited',
      `this read made no progress while \`limits.readBufferBytes\` (${limit}) was used up; ` +
        'resume after the last record that it returned',
      { field: 'limits.readBufferBytes' },
    )
  }
}

interface Waiter {
  readonly share: Share
  readonly bytes: number
  readonly since: number
  readonly resolve: () => void
}

class Share implements ReadShare {
  readonly #budget: ReadBudget
  readonly end: (reason: HeadwaterError) => void
  /** Only the budget changes this and the members below. */
  bytes = 0
  /** When the read last made progress. */
  since = 0
  leave: (() => void) | undefined = undefined
  isClosed = false

  constructor(budget: ReadBudget, end: (reason: HeadwaterError) => void) {
    this.#budget = budget
    this.end = end
  }

  hold(bytes: number): MaybePromise<void> {
    return this.#budget.hold(this, bytes)
  }

  correct(bytes: number): void {
    this.#budget.correct(this, bytes)
  }

  moved(): void {
    this.#budget.moved(this)
  }

  close(): void {
    this.#budget.close(this)
  }
}
