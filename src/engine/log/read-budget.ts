import { HeadwaterError } from '../../model/errors.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import type { Clock } from '../../runtime/clock.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'

/** Batches of up to this many metered bytes are small. */
export const SMALL_BYTES = 65_536
/** How much of all large batches is delivered in one turn of the event loop, in metered bytes. */
const TURN_BYTES = READ_METERED_BYTES_MAX
/** A consumer that has not asked for more for this long gives back what its read holds, in milliseconds. */
const STALL_MS = 1_000
const CHECK_MS = 250
/** The part of the memory that only small reads use: at least what one may hold until its size is known. */
const RESERVED_PART = 8
const RESERVED_BYTES_MIN = readCost(2 * READ_METERED_BYTES_MAX, READ_RECORDS_MAX)

/**
 * Estimates the memory of a read that holds this many metered bytes and records: the stored blocks, and one
 * batch as it is sent, with about 64 bytes around each record.
 */
export function readCost(meteredBytes: number, count: number): number {
  return (
    meteredBytes + Math.min(meteredBytes, READ_METERED_BYTES_MAX) + 64 * Math.min(count, READ_RECORDS_MAX)
  )
}

/**
 * The memory that the open reads of an engine hold together: blocks read from the storage, and batches that
 * their consumers have not finished. When it is used up, reads wait in the order of their arrival, and
 * consumers that stall give back what their reads hold. Small reads have a queue of their own and a reserved
 * part, because they would otherwise wait for large ones.
 */
export class ReadBudget {
  readonly #limit: number
  readonly #clock: Clock
  #used = 0
  /** The shares of all open reads, including those that hold nothing. */
  readonly #shares = new Set<ReadShare>()
  /** The small reads that wait. */
  readonly #small: WaitingReads
  readonly #large: WaitingReads
  #cancelCheck: (() => void) | undefined
  /** The last turn that large batches wait for, and the bytes that are delivered in it. */
  #turn: Promise<void> = Promise.resolve()
  #turnBytes = 0

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
    const reserved = Math.max(limit / RESERVED_PART, RESERVED_BYTES_MIN)
    this.#small = { limit, shares: new Set() }
    this.#large = { limit: limit - reserved, shares: new Set() }
  }

  get used(): number {
    return this.#used
  }

  /** Whether more than half is used: nothing should be read ahead. */
  get isShort(): boolean {
    return this.#used > this.#limit / 2
  }

  /**
   * Opens the share of a read, whose consumer is to ask for something. `giveBack` is called with the reason
   * if it stalls and others wait: it closes the share, or resizes it to nothing.
   */
  open(giveBack: (reason: HeadwaterError) => void): ReadShare {
    const share = new ReadShare(this, this.#clock, giveBack)
    this.#shares.add(share)
    return share
  }

  /**
   * Resolves in the turn of the event loop in which a large batch may be delivered: in order of arrival, up
   * to 1 MiB in each. Encoding and writing that much takes milliseconds, for which appends, timers and other
   * connections wait.
   */
  turnFor(bytes: number): Promise<void> {
    this.#turnBytes += bytes
    if (this.#turnBytes > TURN_BYTES) {
      this.#turnBytes = bytes
      this.#turn = this.#turn.then(macrotask)
    }
    return this.#turn
  }

  /** @internal */
  acquire(share: ReadShare, bytes: number, isSmall: boolean): MaybePromise<void> {
    if (!this.#shares.has(share)) return undefined
    this.#used -= share.bytes
    share.bytes = 0
    share.wanted = bytes
    const queue = isSmall ? this.#small : this.#large
    const isFirst = this.#small.shares.size === 0 && queue.shares.size === 0
    if (isFirst && this.#fits(share, queue)) {
      this.#grant(share)
      return undefined
    }
    queue.shares.add(share)
    const admitted = new Promise<void>((resolve) => {
      share.admitted = resolve
    })
    // What it has given up may be enough for others.
    this.#admit()
    this.#check()
    return admitted
  }

  /** @internal */
  resize(share: ReadShare, bytes: number): void {
    if (!this.#shares.has(share)) return
    this.#used += bytes - share.bytes
    share.bytes = bytes
    this.#admit()
  }

  /** @internal */
  close(share: ReadShare): void {
    this.#small.shares.delete(share)
    this.#large.shares.delete(share)
    this.resize(share, 0)
    this.#shares.delete(share)
  }

  /** Admits the reads at the front of the queues, small ones first. */
  #admit(): void {
    for (const queue of [this.#small, this.#large]) {
      for (const share of queue.shares) {
        if (!this.#fits(share, queue)) return
        queue.shares.delete(share)
        this.#grant(share)
      }
    }
    this.#cancelCheck?.()
    this.#cancelCheck = undefined
  }

  #fits({ wanted }: ReadShare, { limit }: WaitingReads): boolean {
    return this.#used === 0 || this.#used + wanted <= limit
  }

  #grant(share: ReadShare): void {
    share.bytes = share.wanted
    this.#used += share.bytes
    share.admitted?.()
    share.admitted = undefined
  }

  /** Makes room for the reads that wait, now and at intervals. */
  #check(): void {
    if (this.#cancelCheck !== undefined) return
    this.#reclaim()
    if (this.#small.shares.size + this.#large.shares.size === 0) return
    this.#cancelCheck = this.#clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined
      this.#check()
    })
  }

  /** Takes from the consumers that have stalled longest as much as the waiting reads need. */
  #reclaim(): void {
    const { limit } = this.#large.shares.size === 0 ? this.#small : this.#large
    let missing = this.#used - limit
    for (const { wanted } of [...this.#small.shares, ...this.#large.shares]) missing += wanted
    const latest = this.#clock.now() - STALL_MS
    const stalled = [...this.#shares]
      .filter(({ bytes, pausedAt }) => bytes > 0 && pausedAt !== undefined && pausedAt <= latest)
      .sort((one, other) => one.pausedAt! - other.pausedAt!)
    for (const { bytes, giveBack } of stalled) {
      if (missing <= 0) return
      missing -= bytes
      giveBack(this.#tooSlow())
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

/** Reads that wait, in the order of their arrival, and the limit of what all reads may hold afterwards. */
interface WaitingReads {
  readonly limit: number
  readonly shares: Set<ReadShare>
}

/** What one read holds of the memory of all. The budget changes its members. */
export class ReadShare {
  readonly #budget: ReadBudget
  readonly #clock: Clock
  readonly giveBack: (reason: HeadwaterError) => void
  bytes = 0
  /** The bytes that it waits for, and what to call then. */
  wanted = 0
  admitted: (() => void) | undefined = undefined
  /** Since when its consumer has not asked for more; undefined while something is being read for it. */
  pausedAt: number | undefined

  constructor(budget: ReadBudget, clock: Clock, giveBack: (reason: HeadwaterError) => void) {
    this.#budget = budget
    this.#clock = clock
    this.giveBack = giveBack
    this.pausedAt = clock.now()
  }

  /**
   * Holds `bytes` in place of what it held. Returns a promise if others have to give something back first; it
   * never settles once the share is closed. Small reads wait for small ones only.
   */
  acquire(bytes: number, isSmall: boolean): MaybePromise<void> {
    return this.#budget.acquire(this, bytes, isSmall)
  }

  /** Changes what it holds, without waiting. */
  resize(bytes: number): void {
    this.#budget.resize(this, bytes)
  }

  /** The consumer has got something: until `resume`, what is held depends on its pace. */
  pause(): void {
    this.pausedAt = this.#clock.now()
  }

  /** The consumer asks for more. */
  resume(): void {
    this.pausedAt = undefined
  }

  /** Gives everything back. A second call does nothing. */
  close(): void {
    this.#budget.close(this)
  }
}
