import type { AppendAck } from '../../src/model/info.ts'
import { attemptWithEntry } from '../../src/sync/outbox-attempts.ts'
import type { Progress } from '../../src/sync/outbox-log.ts'
import type { EntryAttempt, OutboxLog } from './outbox-log.ts'

/** What the attempt to send the next entry depends on. */
interface Taking {
  /** The entries that have left the outbox when it is stored. */
  readonly leaving: ReadonlySet<number>
  /** Returns the place of the attempt whose epoch can be continued, if there is one. */
  readonly acknowledgedAt: () => number | undefined
}

const NONE: ReadonlySet<number> = new Set()

/**
 * Tracks which attempts in the log of an outbox a sender has taken into account. Until it knows an attempt of
 * another sender, it does not recognize the records of that attempt on the server.
 */
export class KnownAttempts {
  readonly #log: OutboxLog
  readonly #acknowledgedAt: () => number | undefined
  #at: number | undefined
  /** Set while the next entry may be stored together with the attempt to send it. */
  #taking: Taking | undefined
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
  idleUntil(condition: () => boolean, signal: AbortSignal): Promise<void> {
    const taking = { leaving: NONE, acknowledgedAt: this.#acknowledgedAt }
    return this.#whileTaking(taking, this.#log.eventually(condition, signal))
  }

  /**
   * Waits until it is stored that entries were confirmed. In the meantime another one may be stored together
   * with its attempt. `acknowledgedAt` is the place of the attempt that they were sent with.
   */
  untilLeft(
    confirmed: Progress['confirmed'],
    acknowledgedAt: number | undefined,
    stored: Promise<void>,
  ): Promise<void> {
    const leaving = new Set(confirmed.map(([number]) => number))
    return this.#whileTaking({ leaving, acknowledgedAt: () => acknowledgedAt }, stored)
  }

  async #whileTaking(taking: Taking, work: Promise<void>): Promise<void> {
    this.#taking = taking
    await work.finally(() => {
      this.#taking = undefined
    })
  }

  #attemptWith(records: number): EntryAttempt | undefined {
    if (this.#taking === undefined || !this.isLast) return undefined
    const { leaving, acknowledgedAt } = this.#taking
    const record = attemptWithEntry(this.#log.state, acknowledgedAt(), records, leaving)
    if (record === undefined) return undefined
    this.#taking = undefined
    const appended = (acked: Promise<AppendAck>) => {
      this.#storing = acked.then(
        ({ end }) => end.seqNum - 1,
        () => undefined,
      )
    }
    return { record, appended }
  }
}
