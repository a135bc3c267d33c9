import type { SequencedRecord } from '../../src/model/record.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import { type RecentWriters, recentWriters } from '../../src/sync/outbox-plan.ts'

/** Tracks the other writers that compete with a sender for the tail, and how long to wait for them. */
export class Contention {
  /** Whether there are other writers: an attempt failed because another writer was first. */
  isPresent = false
  /** Whether the last attempt failed for this reason. */
  hasJustLost = false
  /** How long the last attempt took, in milliseconds. */
  #attemptMs = 0
  #writers: RecentWriters = new Map()

  /** Settles as an attempt does, and notes how long it took. */
  attempt<Result>(clock: Clock, sent: Promise<Result>): Promise<Result> {
    const startedAt = clock.now()
    return sent.finally(() => {
      this.#attemptMs = Math.max(clock.now() - startedAt, 0)
    })
  }

  /** Counts the other writers of examined records. */
  examined(records: readonly SequencedRecord[], device: string): void {
    const last = records.at(-1)
    if (!this.isPresent || last === undefined) return
    this.#writers = recentWriters(this.#writers, records, device, last.timestamp)
  }

  /** Records that an attempt was stored, at a time by the clock of the server. */
  won(time: number, device: string): void {
    this.#writers = recentWriters(this.#writers, [], device, time)
    this.isPresent = this.#writers.size > 0
    this.hasJustLost = false
  }

  /** Records that an attempt failed because another writer was first. */
  lost(): void {
    this.isPresent = true
    this.hasJustLost = true
  }

  /** Returns how long to wait before the next attempt, in milliseconds. */
  pauseMs(random: number): number {
    return contentionMs(Math.max(this.#writers.size, 1), this.#attemptMs, random)
  }
}
