import type { Clock } from '../../../src/index.ts'

/** The earliest and the latest time that an engine used during a period, and how long it took. */
export interface ClockWindow {
  min: number
  max: number
  /** Milliseconds of timers, which do not notice that a clock is set. */
  elapsedMs: number
}

/** How often an engine compares its clock with that of the storage, in milliseconds. */
const MEASURE_MS = 5_000

/**
 * The clock of one engine. It may be ahead or behind, may be set, and stops when the engine crashes. If the
 * storage has a clock, the engine corrects its own one by the offset that it measured last.
 */
export class EngineClock implements Clock {
  readonly #time: Clock
  readonly #hasSharedClock: boolean
  #offsetMs: number
  /** The part of the offset by which nothing may be deleted. */
  #leapMs = 0
  #correctionMs = 0
  #measuredAt = Number.NEGATIVE_INFINITY
  readonly #timers = new Set<() => void>()
  /** The open windows, with the time at which each began. */
  readonly #windows = new Map<ClockWindow, number>()
  #latestTime = 0
  #latestDeletionTime = 0
  #isStopped = false

  constructor(time: Clock, offsetMs: number, hasSharedClock: boolean) {
    this.#time = time
    this.#offsetMs = offsetMs
    this.#hasSharedClock = hasSharedClock
    this.measure()
  }

  get armed(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#time.now() + this.#offsetMs
  }

  /** The time that the engine uses. */
  get engineTime(): number {
    return this.now() + this.correctionMs
  }

  /** The time by which the engine may delete. */
  get deletionTime(): number {
    return this.#hasSharedClock ? this.#time.now() : this.engineTime - this.#leapMs
  }

  /** The latest time that the engine may have used. */
  get latestTime(): number {
    this.#look()
    return this.#latestTime
  }

  /** The latest time by which the engine may have deleted. */
  get latestDeletionTime(): number {
    this.#look()
    return this.#latestDeletionTime
  }

  /** How far the clock of the storage was ahead when it was read last. */
  get correctionMs(): number {
    if (this.#time.now() - this.#measuredAt >= MEASURE_MS) this.measure()
    return this.#correctionMs
  }

  /** Reads the clock of the storage, if it has one. */
  measure(): number {
    const now = this.#time.now()
    this.#measuredAt = now
    if (this.#hasSharedClock) this.#change(() => (this.#correctionMs = now - this.now()))
    return now
  }

  schedule(delayMs: number, callback: () => void): () => void {
    if (this.#isStopped) return () => {}
    const cancelTimer = this.#time.schedule(delayMs, () => {
      this.#timers.delete(cancel)
      callback()
    })
    const cancel = () => {
      this.#timers.delete(cancel)
      cancelTimer()
    }
    this.#timers.add(cancel)
    return cancel
  }

  /** Sets the clock forward or back by this amount. */
  step(byMs: number): void {
    this.#change(() => (this.#offsetMs += byMs))
  }

  /** Sets the clock to another year, or back to the right one. */
  leap(toMs: number): void {
    this.#change(() => {
      this.#offsetMs += toMs - this.#leapMs
      this.#leapMs = toMs
    })
  }

  watch(): ClockWindow {
    const now = this.engineTime
    const window = { min: now, max: now, elapsedMs: 0 }
    this.#windows.set(window, this.#time.now())
    return window
  }

  /** Ends a window. A second call does nothing. */
  unwatch(window: ClockWindow): void {
    const began = this.#windows.get(window)
    if (began === undefined) return
    this.#look()
    window.elapsedMs = this.#time.now() - began
    this.#windows.delete(window)
  }

  stop(): void {
    this.#look()
    this.#isStopped = true
    for (const cancel of [...this.#timers]) cancel()
  }

  #change(change: () => void): void {
    this.#look()
    change()
    this.#look()
  }

  /** Notices what the clock shows. It only advances until it is set or corrected. */
  #look(): void {
    if (this.#isStopped) return
    const now = this.now() + this.#correctionMs
    const deletionTime = this.#hasSharedClock ? this.#time.now() : now - this.#leapMs
    this.#latestTime = Math.max(this.#latestTime, now)
    this.#latestDeletionTime = Math.max(this.#latestDeletionTime, deletionTime)
    for (const window of this.#windows.keys()) {
      window.min = Math.min(window.min, now)
      window.max = Math.max(window.max, now)
    }
  }
}
