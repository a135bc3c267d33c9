import type { Clock } from '../../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure } from '../files/errors.ts'

/** How often a roll is tried while appends are refused, in milliseconds: it may read a whole checkpoint. */
const RETRY_MS = 60_000

/** The rolls that failed since one succeeded. */
export class RollFailures {
  readonly #clock: Clock | undefined
  #last: StorageFailure | undefined
  #failedAt = 0
  /** Whether a call was refused since. */
  #hasRefused = false
  /** The size of the journals at which a roll is tried again. */
  #retryBytes = 0

  /** @param clock Without one, a roll is tried again for each call that is refused. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  add(error: unknown, retryBytes: number): void {
    this.#last = fileFailure(error, true)
    this.#failedAt = this.#clock?.now() ?? 0
    this.#hasRefused = false
    this.#retryBytes = retryBytes
  }

  clear(): void {
    this.#last = undefined
    this.#retryBytes = 0
  }

  /** Whether a roll may be tried, for journals of this size. */
  isRetryDue(journalBytes: number, isOverLimit: boolean): boolean {
    if (journalBytes >= this.#retryBytes) return true
    if (!isOverLimit || !this.#hasRefused) return false
    const waitedMs = this.#clock === undefined ? RETRY_MS : this.#clock.now() - this.#failedAt
    return waitedMs < 0 || waitedMs >= RETRY_MS
  }

  /** Returns the failure of a call that is refused because journals of this size are beyond the limit. */
  refusal(journalBytes: number): StorageFailure | undefined {
    if (this.#last === undefined) return undefined
    this.#hasRefused = true
    const { kind, message } = this.#last
    const reason = `journals have grown to ${journalBytes} bytes, because rolling them fails: ${message}`
    return new StorageFailure(kind, reason, { nothingWritten: true, cause: this.#last })
  }
}
