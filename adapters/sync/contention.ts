import type { SequencedRecord } from '../../src/model/record.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import { type RecentWriters, recentWriters } from '../../src/sync/outbox-plan.ts'

/** What a sender knows of others that append at the same time. */
export class Contention {
  /** There are such others: an attempt failed because another one was first. */
  isPresent = false
  /** The last attempt has failed for that reason. */
  isBeaten = false
  /** How long the last attempt took, in milliseconds. */
  attemptMs = 0
  #writers: RecentWriters = new Map()

  /** Counts the others among the writers of examined records. */
  examined(records: readonly SequencedRecord[], device: string): void {
    const last = records.at(-1)
    if (!this.isPresent || last === undefined) return
    this.#writers = recentWriters(this.#writers, records, device, last.timestamp)
  }

  /** Notes an attempt that was stored at a time, by the clock of the server. */
  won(time: number, device: string): void {
    this.#writers = recentWriters(this.#writers, [], device, time)
    this.isPresent = this.#writers.size > 0
    this.isBeaten = false
  }

  /** Notes an attempt that failed because another one was first. */
  lost(): void {
    this.isPresent = true
    this.isBeaten = true
  }

  /** Returns how long to wait before the next attempt, in milliseconds. */
  pauseMs(random: number): number {
    return contentionMs(Math.max(this.#writers.size, 1), this.attemptMs, random)
  }
}
