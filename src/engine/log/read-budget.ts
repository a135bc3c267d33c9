import { HeadwaterError } from '../../model/errors.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import type { Clock } from '../../runtime/clock.ts'
import { macrotask } from '../../runtime/macrotask.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import { ByteSemaphore } from '../../runtime/quotas.ts'

/** Batches of up to this many metered bytes are small. */
export const SMALL_BYTES = 65_536
/** The part of the memory that small reads have to themselves. */
const SMALL_PART = 1 / 4
/** How much of all large batches is delivered in one turn of the event loop, in metered bytes. */
const TURN_BYTES = READ_METERED_BYTES_MAX
/** A consumer that has not asked for more for this long gives back what its read holds, in milliseconds. */
const STALL_MS = 1_000
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

/**
 * The memory that the open reads of an engine hold together: blocks read from the storage, and batches that
 * their consumers have not finished. When it is used up, reads wait in the order of their arrival, and
 * consumers that stall give back what their reads hold. Small reads have a part to themselves, because they
 * would otherwise wait for large ones. Responses that are not sent belong to the part of large reads; what
 * they hold beyond it is taken from the other part.
 */
export class ReadBudget {
  readonly #limit: number
  readonly #clock: Clock
  readonly #small: ByteSemaphore
  readonly #large: ByteSemaphore
  /** The reads whose consumers have not asked for more, those first that paused first. */
  readonly #paused = new Set<ReadShare>()
  #cancelCheck: (() => void) | undefined
  /** The last turn that large batches wait for, and the bytes that are delivered in it. */
  #turn: Promise<void> = Promise.resolve()
  #turnBytes = 0

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
    this.#large = new ByteSemaphore(limit - limit * SMALL_PART)
    this.#small = new ByteSemaphore(limit * SMALL_PART, () => this.#large.excess)
  }

  get used(): number {
    return this.#small.used + this.#large.used
  }

  /**
   * Opens the share of a read, whose consumer is to ask for something. `giveBack` is called with the reason
   * if it stalls and others wait: it closes the share, or resizes it to nothing.
   */
  open(giveBack: (reason: HeadwaterError) => void): ReadShare {
    return new ReadShare(this, giveBack)
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
  queueOf(isSmall: boolean): ByteSemaphore {
    return isSmall ? this.#small : this.#large
  }

  /** @internal Whether reads wait for what others hold in this part. */
  isAwaited(part: ByteSemaphore): boolean {
    return part.waiting > 0 || (part.excess > 0 && this.#small.waiting > 0)
  }

  /** @internal */
  release(part: ByteSemaphore, bytes: number): void {
    part.release(bytes)
    this.#small.admit()
  }

  /** @internal */
  pause(share: ReadShare): void {
    share.pausedAt = this.#clock.now()
    this.#paused.add(share)
  }

  /** @internal */
  resume(share: ReadShare): void {
    this.#paused.delete(share)
  }

  /** @internal Makes room for the reads that wait, now and at intervals. */
  check(): void {
    if (this.#cancelCheck !== undefined) return
    const latest = this.#clock.now() - STALL_MS
    for (const share of this.#paused) {
      if (share.pausedAt > latest) break
      if (share.isAwaited) share.giveBack(this.#tooSlow())
    }
    if (this.#small.waiting + this.#large.waiting === 0) return
    this.#cancelCheck = this.#clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined
      this.check()
    })
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

/** What one read holds of the memory of all. */
export class ReadShare {
  readonly giveBack: (reason: HeadwaterError) => void
  /** When its consumer has paused, in milliseconds. Set by the budget only. */
  pausedAt = 0
  readonly #budget: ReadBudget
  #semaphore: ByteSemaphore
  #bytes = 0
  #isClosed = false

  constructor(budget: ReadBudget, giveBack: (reason: HeadwaterError) => void) {
    this.#budget = budget
    this.giveBack = giveBack
    this.#semaphore = budget.queueOf(false)
    this.pause()
  }

  /** Whether it holds something that others wait for. */
  get isAwaited(): boolean {
    return this.#bytes > 0 && this.#budget.isAwaited(this.#semaphore)
  }

  /**
   * Holds `bytes` in place of what it held. Returns a promise if others have to give something back first; it
   * never settles once the share is closed. Small reads wait for small ones only.
   */
  acquire(bytes: number, isSmall: boolean): MaybePromise<void> {
    if (this.#isClosed) return undefined
    this.resize(0)
    const semaphore = this.#budget.queueOf(isSmall)
    this.#semaphore = semaphore
    if (this.tryAdd(bytes)) return undefined
    const acquired = new Promise<void>((resolve) => {
      semaphore.acquire(bytes, () => {
        if (this.#isClosed) return this.#budget.release(semaphore, bytes)
        this.#bytes = bytes
        resolve()
      })
    })
    this.#budget.check()
    return acquired
  }

  /** Holds `bytes` more if they are free and no other read waits. Returns whether it does. */
  tryAdd(bytes: number): boolean {
    if (this.#isClosed || !this.#semaphore.tryAcquire(bytes)) return false
    this.#bytes += bytes
    return true
  }

  /** Changes what it holds, without waiting. */
  resize(bytes: number): void {
    if (this.#isClosed) return
    const held = this.#bytes
    this.#bytes = bytes
    if (bytes > held) this.#semaphore.exceed(bytes - held)
    else this.#budget.release(this.#semaphore, held - bytes)
  }

  /** The consumer has got something: until `resume`, what is held depends on its pace. */
  pause(): void {
    if (!this.#isClosed) this.#budget.pause(this)
  }

  /** The consumer asks for more. */
  resume(): void {
    this.#budget.resume(this)
  }

  /** Gives everything back. A second call does nothing. */
  close(): void {
    this.resize(0)
    this.resume()
    this.#isClosed = true
  }
}
