import type { AppendAck } from '../../src/model/info.ts'
import { attemptWithEntry } from '../../src/sync/outbox-attempts.ts'
import type { EntryAttempt, OutboxLog } from './outbox-log.ts'

/**
 * The attempts in the log of an outbox that one sender accounts for. Before it knew of an attempt of another
 * sender, it may have examined the records of that one as those of a stranger.
 */
export class KnownAttempts {
  readonly #log: OutboxLog
  readonly #acknowledgedAt: () => number | undefined
  #at: number | undefined
  /** Nothing is to be sent, and the next entry may be stored together with the attempt to send it. */
  #takesEntry = false
  /** Resolves to the place of an attempt that is being stored together with its entry. */
  #storing: Promise<number | undefined> | undefined

  /** `acknowledgedAt` returns the place of the attempt that can be continued, if there is one. */
  constructor(log: OutboxLog, acknowledgedAt: () => number | undefined) {
    this.#log = log
    this.#acknowledgedAt = acknowledgedAt
    log.attemptWith = (records) => this.#attemptWith(records)
  }

  /** The place of the last attempt that is accounted for, or -1; undefined until the log was read. */
  get at(): number | undefined {
    return this.#at
  }

  /** Whether the last attempt of the log is accounted for. */
  get isLast(): boolean {
    return this.#at === (this.#log.state.attempt?.at ?? -1)
  }

  /** Accounts for an attempt that this sender has stored. Returns false if another one was first. */
  add(at: number): boolean {
    if (this.#log.state.attempt?.at !== at) return false
    this.#at = at
    return true
  }

  /** Accounts for the last attempt. Resolves to whether it may be that of another sender. */
  async catchUp(signal: AbortSignal): Promise<boolean> {
    const stored = await this.#storing
    this.#storing = undefined
    if (stored !== undefined) this.add(stored)
    if (this.isLast) return false
    await this.#log.caughtUp(signal)
    this.#at = this.#log.state.attempt?.at ?? -1
    return true
  }

  /** Waits until a condition holds. Meanwhile an entry may be stored together with the attempt to send it. */
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
