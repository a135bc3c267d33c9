import { HeadwaterError } from '../../model/errors.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import { ReadScheduler, SMALL_BYTES } from './read-scheduler.ts'

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

/** The most memory that a small read holds. */
const SMALL_COST = readCost(SMALL_BYTES, READ_RECORDS_MAX)
/** The part of the memory that only small reads use: at least what one may hold until its size is known. */
const RESERVED_PART = 8
const RESERVED_BYTES_MIN = readCost(2 * READ_METERED_BYTES_MAX, READ_RECORDS_MAX)

/** The memory of one read. */
export interface ReadShare {
  /**
   * Replaces what the read holds with `bytes`. Returns a promise if that must wait for other reads; it never
   * settles once the share is closed. A read that is expected to be small waits for other small ones only.
   */
  hold(bytes: number, isSmall?: boolean): MaybePromise<void>
  /**
   * Corrects the held bytes, without waiting. Returns false, and holds nothing, if the read was expected to
   * be small and there is no room for what it is: it must drop it, and wait.
   */
  correct(bytes: number): boolean
  /** Records that the consumer has finished the last batch. */
  moved(): void
  /** Returns everything. A second call does nothing. */
  close(): void
}

/**
 * The memory that the open reads of an engine hold together: blocks read from the storage, and batches that
 * their consumers have not finished. When it is used up, further reads wait, and those without progress for a
 * second must give back what they hold. A part is reserved for small reads, which would otherwise wait for
 * large ones.
 */
export class ReadBudget {
  readonly scheduler = new ReadScheduler()
  readonly #limit: number
  /** The limit of large reads. */
  readonly #largeLimit: number
  /** @internal */
  readonly clock: Clock
  #used = 0
  /** The shares of all open reads, including those that hold nothing. */
  readonly #shares = new Set<Share>()
  /** Reads that ask for their next batch. They precede new ones, until those have waited for too long. */
  readonly #moving = new Set<Share>()
  readonly #waiting = new Set<Share>()
  /** Small reads, which precede all others. */
  readonly #small = new Set<Share>()
  /** How many reads the three sets have. */
  #queued = 0
  #cancelCheck: (() => void) | undefined

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#largeLimit = limit - Math.max(limit / RESERVED_PART, RESERVED_BYTES_MIN)
    this.clock = clock
  }

  get used(): number {
    return this.#used
  }

  /** Whether more than half is used: reads should take little at a time. */
  get isShort(): boolean {
    return this.#used > this.#limit / 2
  }

  /**
   * Opens the share of a read. `end` is called with the reason if the read must release its memory: it closes
   * the share, or corrects what it holds, unless the read is moving at that time.
   */
  open(end: (reason: HeadwaterError) => void): ReadShare {
    const share = new Share(this, end)
    this.#shares.add(share)
    return share
  }

  /**
   * Acquires `bytes` for a small read that ends at once, until `release`. Returns false, and acquires
   * nothing, if it would have to wait.
   */
  tryAcquire(bytes: number): boolean {
    if (this.#queued > 0 || (this.#used > 0 && this.#used + bytes > this.#limit)) return false
    this.#used += bytes
    return true
  }

  /** Releases bytes of `tryAcquire`. */
  release(bytes: number): void {
    this.#used -= bytes
    if (this.#queued > 0) this.#admit()
  }

  /** @internal */
  hold(share: Share, bytes: number, isSmall: boolean): MaybePromise<void> {
    if (!this.#shares.has(share)) return undefined
    const large = share.since > 0 ? this.#moving : this.#waiting
    share.isSmall = isSmall
    share.since = this.clock.now()
    const others = this.#used - share.bytes
    const limit = isSmall ? this.#limit : this.#largeLimit
    const fits = this.#queued === 0 && (others === 0 || others + bytes <= limit)
    this.#used = fits ? others + bytes : others
    share.bytes = fits ? bytes : 0
    if (fits) return undefined
    share.wanted = bytes
    if (share.queue === undefined) this.#queued++
    share.queue = isSmall ? this.#small : large
    share.queue.add(share)
    this.#admit()
    if (share.queue === undefined) return undefined
    return new Promise((resolve) => {
      share.resolve = resolve
      this.#check()
    })
  }

  /** @internal Replaces what a share holds, without waiting. */
  correct(share: Share, bytes: number): boolean {
    this.#used -= share.bytes
    const isKept = !share.isSmall || bytes <= SMALL_COST || this.#fits(bytes, false)
    share.bytes = isKept && this.#shares.has(share) ? bytes : 0
    this.#used += share.bytes
    if (this.#queued > 0) this.#admit()
    return isKept
  }

  /** @internal */
  close(share: Share): void {
    if (share.queue?.delete(share)) this.#queued--
    this.#shares.delete(share)
    this.correct(share, 0)
    this.#admit()
  }

  #fits(bytes: number, isSmall: boolean): boolean {
    return this.#used === 0 || this.#used + bytes <= (isSmall ? this.#limit : this.#largeLimit)
  }

  /** Returns the queue to serve: without room for a small read there is none for a large one. */
  #queue(): Set<Share> {
    if (this.#small.size > 0) return this.#small
    const [oldest] = this.#waiting
    const isOverdue = oldest !== undefined && this.clock.now() - oldest.since >= WAIT_MAX_MS
    return this.#moving.size === 0 || isOverdue ? this.#waiting : this.#moving
  }

  #admit(): void {
    for (;;) {
      const [share] = this.#queue()
      if (share === undefined) {
        this.#cancelCheck?.()
        this.#cancelCheck = undefined
        return
      }
      if (!this.#fits(share.wanted, share.isSmall)) return
      share.queue!.delete(share)
      this.#queued--
      share.queue = undefined
      share.since = this.clock.now()
      // It holds nothing while it waits.
      share.bytes = share.wanted
      this.#used += share.bytes
      share.resolve?.()
      share.resolve = undefined
    }
  }

  /** Makes room for the waiting reads, now and at intervals. */
  #check(): void {
    if (this.#cancelCheck !== undefined) return
    this.#endStalled()
    this.#admit()
    if (this.#queued === 0) return
    this.#cancelCheck = this.clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined
      this.#check()
    })
  }

  /** Ends the reads that have stalled longest, as many as the waiting reads need. */
  #endStalled(): void {
    const large = [...this.#moving, ...this.#waiting]
    let needed = this.#used - (large.length === 0 ? this.#limit : this.#largeLimit)
    for (const { wanted } of [...this.#small, ...large]) needed += wanted
    const latest = this.clock.now() - STALL_MS
    const stalled = [...this.#shares]
      .filter(({ bytes, since }) => bytes > 0 && since <= latest)
      .sort((a, b) => a.since - b.since)
    for (const share of stalled) {
      if (needed <= 0) return
      const { bytes } = share
      share.end(this.#tooSlow())
      needed -= bytes - share.bytes
    }
  }

  #tooSlow(): HeadwaterError {
    return new HeadwaterError(
      'rate_limited',
      `this read paused while \`limits.readBufferBytes\` (${this.#limit}) was used up; ` +
        'resume after its last record',
      { field: 'limits.readBufferBytes' },
    )
  }
}

class Share implements ReadShare {
  readonly #budget: ReadBudget
  readonly end: (reason: HeadwaterError) => void
  /** The bytes that the read holds. Only the budget changes this and the members below. */
  bytes = 0
  /** The time at which the read last made progress, or began to wait; 0 if it has done neither. */
  since = 0
  /** The queue in which it waits for `wanted` bytes. */
  queue: Set<Share> | undefined = undefined
  wanted = 0
  resolve: (() => void) | undefined = undefined
  /** Whether what it holds, or waits for, was expected to be little. */
  isSmall = false

  constructor(budget: ReadBudget, end: (reason: HeadwaterError) => void) {
    this.#budget = budget
    this.end = end
  }

  hold(bytes: number, isSmall = false): MaybePromise<void> {
    return this.#budget.hold(this, bytes, isSmall)
  }

  correct(bytes: number): boolean {
    return this.#budget.correct(this, bytes)
  }

  moved(): void {
    this.since = this.#budget.clock.now()
  }

  close(): void {
    this.#budget.close(this)
  }
}
