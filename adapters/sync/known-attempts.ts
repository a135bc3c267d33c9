import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { onAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import {
  attemptWithEntry,
  deletedStreamError,
  outcomeUnknownError,
  parkedRecord,
} from '../../src/sync/outbox-attempts.ts'
import type { LogRecord, Progress } from '../../src/sync/outbox-log.ts'
import { attemptOutcome, withoutConfirmed } from '../../src/sync/outbox-plan.ts'
import type { EntryNotes, OutboxLog } from './outbox-log.ts'
import { parkAttempt } from './parked-entries.ts'

/** A note that waits for an entry to be stored with. */
interface DeferredNote {
  readonly note: LogRecord
  /** Receives the outcome of the append. */
  readonly appended: (acked: Promise<AppendAck>) => void
}

/** The conditions of the attempt to send the next entry. */
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
  #deferred: DeferredNote | undefined
  /** Resolves to the place in the log of an attempt that is being stored together with its entry. */
  #storing: Promise<number | undefined> | undefined

  /** `acknowledgedAt` returns the place of the attempt whose epoch can be continued, if there is one. */
  constructor(log: OutboxLog, acknowledgedAt: () => number | undefined) {
    this.#log = log
    this.#acknowledgedAt = acknowledgedAt
    log.notesWith = (records) => this.#notesWith(records)
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
   * Stores the progress that entries were confirmed, together with the next entry and its attempt, or alone
   * if there is none in this turn of the event loop. `acknowledgedAt` is the place of the attempt that they
   * were sent with.
   */
  async storeSoon(
    progress: LogRecord,
    confirmed: Progress['confirmed'],
    acknowledgedAt: number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const stored = new Promise<AppendAck>((resolve) => {
      this.#deferred = { note: progress, appended: resolve }
    })
    const store = () => this.#storeDeferred()
    void macrotask().then(store)
    const ignoreSignal = onAbort(signal, store)
    const leaving = new Set(confirmed.map(([number]) => number))
    const included = unlessAborted(signal, stored).then((ack) => this.#log.includes(ack, signal))
    await this.#whileTaking({ leaving, acknowledgedAt: () => acknowledgedAt }, included).finally(ignoreSignal)
  }

  #storeDeferred(): void {
    const deferred = this.#deferred
    this.#deferred = undefined
    deferred?.appended(this.#log.append([deferred.note]))
  }

  async #whileTaking(taking: Taking, work: Promise<void>): Promise<void> {
    this.#taking = taking
    await work.finally(() => {
      this.#taking = undefined
    })
  }

  /**
   * Parks the entries of the last attempt, except those that were found: it cannot be known whether the
   * server has stored them.
   */
  async park(signal: AbortSignal, found: Progress['confirmed'] = []): Promise<void> {
    await parkAttempt(this.#log, withoutConfirmed(this.#log.state, found), outcomeUnknownError(), signal)
  }

  /** Parks the entries of the last attempt: the stream that stored them has been deleted. */
  async parkStored(signal: AbortSignal): Promise<void> {
    await parkAttempt(this.#log, this.#log.state, deletedStreamError(), signal)
  }

  /** Parks the entries of the last attempt if the server refuses to show what it has stored. */
  async parkUnread(error: unknown, signal: AbortSignal): Promise<void> {
    if (!HeadwaterError.is(error) || attemptOutcome(error) !== 'refused') throw error
    await this.park(signal)
  }

  /** Parks an entry that the server refused, unless it was found stored, or was parked before. */
  async parkRefused(number: number, error: HeadwaterError, signal: AbortSignal): Promise<void> {
    const entry = this.#log.state.entries.get(number)
    if (entry === undefined || entry.error !== undefined) return
    await this.#log.append([parkedRecord(number, error)], signal)
  }

  #notesWith(records: number): EntryNotes {
    const deferred = this.#deferred
    this.#deferred = undefined
    const attempt = this.#attemptWith(records)
    return {
      before: deferred === undefined ? [] : [deferred.note],
      after: attempt === undefined ? [] : [attempt],
      appended: (acked) => {
        deferred?.appended(acked)
        if (attempt === undefined) return
        this.#storing = acked.then(
          ({ end }) => end.seqNum - 1,
          () => undefined,
        )
      },
    }
  }

  #attemptWith(records: number): LogRecord | undefined {
    if (this.#taking === undefined || !this.isLast) return undefined
    const { leaving, acknowledgedAt } = this.#taking
    const attempt = attemptWithEntry(this.#log.state, acknowledgedAt(), records, leaving)
    if (attempt !== undefined) this.#taking = undefined
    return attempt
  }
}
