import type { Operation } from '../../model/operations.ts'
import type { Clock } from '../../storage/clock.ts'
import type { AppendUsage, UsageRecorder } from './usage-recorder.ts'

/** Tells a recorder that may come later what was done, and when that was. */
export class UsageTeller implements UsageRecorder {
  readonly #clock: Clock
  readonly #tell: (record: (usage: UsageRecorder) => void) => void

  /** What `tell` is given is to be called in this order, or not at all. */
  constructor(clock: Clock, tell: (record: (usage: UsageRecorder) => void) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  operation(operation: Operation, basin: string | undefined): void {
    this.#tellOfNow((usage, at) => usage.operation(operation, basin, at))
  }

  appended(append: AppendUsage): void {
    this.#tell((usage) => usage.appended(append))
  }

  unaryRead(basin: string): void {
    this.#tellOfNow((usage, at) => usage.unaryRead(basin, at))
  }

  delivered(basin: string, meteredBytes: number): void {
    this.#tellOfNow((usage, at) => usage.delivered(basin, meteredBytes, at))
  }

  streamingRead(basin: string): () => void {
    let end: ((endedAt?: number) => void) | undefined
    this.#tellOfNow((usage, at) => {
      end = usage.streamingRead(basin, at)
    })
    return () => this.#tellOfNow((_, at) => end?.(at))
  }

  storedChanged(logIds: readonly string[]): void {
    this.#tell((usage) => usage.storedChanged(logIds))
  }

  streamCreated(basin: string): void {
    this.#tellOfNow((usage, at) => usage.streamCreated(basin, at))
  }

  basinDeleted(basin: string): void {
    this.#tellOfNow((usage, at) => usage.basinDeleted(basin, at))
  }

  streamDeleted(basin: string, createdAt: number): void {
    this.#tellOfNow((usage, at) => usage.streamDeleted(basin, createdAt, at))
  }

  #tellOfNow(record: (usage: UsageRecorder, at: number) => void): void {
    const at = this.#clock.now()
    this.#tell((usage) => record(usage, at))
  }
}
