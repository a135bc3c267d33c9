import { Observable, type Subscriber } from 'rxjs'
import { loadRest } from './load-rest.ts'
import type { LowSpace } from './space.ts'

/** How much is written between two measurements, in bytes. */
const STEP_BYTES_MIN = 256 * 1024
const STEP_BYTES_MAX = 16 * 1024 * 1024

/**
 * Tells before the quota is hit. Measures when somebody begins to listen, and then after as many bytes as a quarter of what is left: no
 * timers, and nothing while nobody listens.
 */
export class SpaceWatch {
  /** The usage, each time it is measured while space is low, and when an append found none left. */
  readonly low$: Observable<LowSpace>
  readonly #lowShare: number
  readonly #listeners = new Set<Subscriber<LowSpace>>()
  #writtenBytes = 0
  /** How many were written when it was last measured. */
  #measuredAt = 0
  #stepBytes = STEP_BYTES_MIN
  #isMeasuring = false
  /** Since the last measurement. */
  #isFull = false

  constructor(lowShare: number) {
    this.#lowShare = lowShare
    this.low$ = new Observable((subscriber) => {
      this.#listeners.add(subscriber)
      void this.#measure()
      return () => this.#listeners.delete(subscriber)
    })
  }

  wrote(bytes: number): void {
    this.#writtenBytes += bytes
    if (this.#writtenBytes - this.#measuredAt >= this.#stepBytes) void this.#measure()
  }

  /** An append found no space. */
  full(): void {
    this.#isFull = true
    void this.#measure()
  }

  async #measure(): Promise<void> {
    if (this.#listeners.size === 0 || this.#isMeasuring) return
    this.#isMeasuring = true
    const writtenBytes = this.#writtenBytes
    this.#measuredAt = writtenBytes
    const rest = await loadRest().catch(() => undefined)
    const usage = await rest?.measureUsage()
    this.#isMeasuring = false
    // The code could not be had: it is tried again when more was written.
    if (rest === undefined || usage === undefined) return
    const isFull = this.#isFull
    this.#isFull = false
    const { usedBytes = 0, quotaBytes = 0 } = usage
    const leftBytes = quotaBytes * this.#lowShare - usedBytes
    this.#stepBytes = Math.min(Math.max(leftBytes / 4, STEP_BYTES_MIN), STEP_BYTES_MAX)
    if (!isFull && (rest.usedShare(usage) ?? 0) < this.#lowShare) return
    for (const listener of this.#listeners) listener.next({ ...usage, isFull, writtenBytes })
  }
}
