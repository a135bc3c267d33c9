import type { AppendAck } from '../../src/model/info.ts'
import { attemptWithEntry } from '../../src/sync/outbox-attempts.ts'
import type { EntryAttempt, OutboxLog } from './outbox-log.ts'

/**
 * Tracks which attempts in the log of an outbox a sender has taken into account. Until it knows an attempt of
 * another sender, it does not recognize the records of that attempt on the server.
 */
export class KnownAttempts {
  readonly #log: OutboxLog
  readonly #acknowledgedAt: () => number | undefined
  #at: number | undefined
  /** Whether the next entry may be stored together with the attempt to send it: the sender is idle. */
  #takesEntry = false
  /** Resolves to the place in the log of an attempt that is being stored together with its entry. */
  #storing: Promise<number | undefined> | undefined

  /** `acknowledgedAt` returns the place of the attempt whose epoch can be continued, if there is one. */
  constructor(log: OutboxLog, acknowledgedAt: () => number | undefined) {
    this.#log = log
    this.#acknowledgedAt = acknowledgedAt
    log.attemptWith = (records) => this.#attemptWith(records)
  }

  /** The place of the last known attempt, or -1 if there is none; undefined until the log was read. */
  get at(): number | undefined {
    return this.#at
  }

  /** Whether the last attempt of the log is known. */
  get isLast(): boolean {
    return this.#at === (this.#log.state.attempt?.at ?? -1)
  }

  /** Adds an attempt that this sender has stored. Returns false if another sender was first. */
  add(at: number): boolean {
    if (this.#log.state.attempt?.at !== at) return false
    this.#at = at
    return true
  }

  /** Reads up to the last attempt. Resolves to whether another sender may have made it. */
  async catchUp(signal: AbortSignal): Promise<boolean> {
    const stored = await this.#storing
    this.#storing = undefined
    if (stored !== undefined) this.add(stored)
    if (this.isLast) return false
    await this.#log.caughtUp(signal)
    this.#at = this.#log.state.attempt?.at ?? -1
    return true
  }

  /** Waits until a condition holds. In the meantime an entry may be stored together with its attempt. */
  async idleUntil(condition: () => boolean, signal: AbortSignal): Promise<void> {
    this.#takesEntry = true
    try {
      await this.#log.eventually(condition, signal)
    } finally {
      this.#takesEntry = false
    }
  }

  #attemptWith(records: number): EntryAttempt | undefined {
    if (!this.#takesEntry || !this.isLast) return undefined
    const record = attemptWithEntry(this.#log.state, this.#acknowledgedAt(), records)
    if (record === undefined) return undefined
    this.#takesEntry = false
    const appended = (acked: Promise<AppendAck>) => {
      this.#storing = acked.then(
        ({ end }) => end.seqNum - 1,
        () => undefined,
      )
    }
    return { record, appended }
  }
}
