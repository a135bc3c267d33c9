import type { Clock } from '../../../src/index.ts'

/** The earliest and the latest time that a clock showed during a period. */
export interface ClockWindow {
  min: number
  max: number
}

/** The clock of one engine. It may be ahead or behind, may be set, and stops when the engine crashes. */
export class EngineClock implements Clock {
  readonly #time: Clock
  #offsetMs: number
  readonly #timers = new Set<() => void>()
  readonly #windows = new Set<ClockWindow>()
  #isStopped = false

  constructor(time: Clock, offsetMs: number) {
    this.#time = time
    this.#offsetMs = offsetMs
  }

  get armed(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#time.now() + this.#offsetMs
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
    this.#widen()
    this.#offsetMs += byMs
    this.#widen()
  }

  watch(): ClockWindow {
    const now = this.now()
    const window = { min: now, max: now }
    this.#windows.add(window)
    return window
  }

  unwatch(window: ClockWindow): void {
    this.#widen()
    this.#windows.delete(window)
  }

  stop(): void {
    this.#isStopped = true
    for (const cancel of [...this.#timers]) cancel()
  }

  #widen(): void {
    const now = this.now()
    for (const window of this.#windows) {
      window.min = Math.min(window.min, now)
      window.max = Math.max(window.max, now)
    }
  }
}
