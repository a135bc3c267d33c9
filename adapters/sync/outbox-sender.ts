import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import {
  type Confirmation,
  type OutboxEntry,
  parkedRecord,
  progressRecord,
} from '../../src/sync/outbox-log.ts'
import {
  type AfterRefusal,
  attemptOutcome,
  confirmationsIn,
  confirmationsOf,
  entriesToSend,
  type RecentWriters,
  recentWriters,
  sentRecords,
} from '../../src/sync/outbox-plan.ts'
import { asHeadwaterError, isStreamMissing } from './errors.ts'
import type { OutboxLog } from './outbox-log.ts'
import { type PauseContext, pauseAfter, pauseUntil } from './pause.ts'

/** How long the end of an acknowledged append passes for the tail, in milliseconds. */
const FRESH_MS = 1_000
/** How long the sender waits for the copy to reach a position, before it tries again, in milliseconds. */
const COPY_WAIT_MS = 10_000

export interface SenderContext extends PauseContext {
  readonly log: OutboxLog
  readonly remote: Stream
  /** Where records are examined: the remote stream, or a copy of it that a mirror keeps. */
  readonly examined: Stream
  readonly afterRefusal: AfterRefusal
  readonly onSent: (() => void) | undefined
}

/**
 * Sends the entries of an outbox, each exactly once on any server. An attempt at a position is conditional on
 * it, and is made only after every record below was examined. So of all attempts at one position at most one
 * takes effect, and a late one fails; and none contains a record that is stored below.
 */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** Every record below was examined. */
  #position = 0
  /** The tail as far as a rejected attempt told it. */
  #tailMin = 0
  /** Others append at the same time: an attempt failed because another one was first. */
  #isContended = false
  /** Those others, while there is contention. */
  #writers: RecentWriters = new Map()
  /** How long the last attempt took, in milliseconds. */
  #attemptMs = 0
  /** The time of the last acknowledgement. */
  #sentAt = Number.NEGATIVE_INFINITY
  #failures = 0
  /** The place of every attempt in doubt is the position, or was examined. */
  #isDoubtHere = false
  /** Entries are sent one by one, to find the one that the server refuses. */
  #isSingle = false

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
  }

  /** Sends until the signal aborts, or until only the app can go on. */
  async run(): Promise<void> {
    const { log, onState } = this.#context
    await log.eventually(() => log.state.progress !== undefined, this.#signal)
    this.#position = log.state.progress!.position
    this.#isDoubtHere = !log.state.progress!.inDoubt
    while (!this.#signal.aborted) {
      if (this.#next().length === 0) {
        await this.#idle()
        onState({ kind: 'idle' })
        await log.eventually(() => this.#next().length > 0, this.#signal)
      }
      try {
        onState({ kind: 'sending' })
        await this.#send()
        this.#failures = 0
      } catch (error) {
        if (this.#signal.aborted) return
        if (!HeadwaterError.is(error) || attemptOutcome(error) === 'stopped') {
          onState({ kind: 'stopped', error: asHeadwaterError(error) })
          return
        }
        await pauseAfter(error, ++this.#failures, this.#context, this.#signal)
      }
    }
  }

  #next(): readonly OutboxEntry[] {
    return entriesToSend(this.#context.log.state, this.#context.afterRefusal, this.#isSingle)
  }

  /** Notes that no attempt is in doubt any more, and removes what was sent. */
  async #idle(): Promise<void> {
    const { log } = this.#context
    this.#isSingle = false
    if (log.state.progress!.inDoubt && log.state.entries.size === 0) await this.#note([], false)
    await log.trim()
  }

  async #send(): Promise<void> {
    await this.#locate()
    const entries = this.#next()
    if (entries.length === 0) return
    const { log, remote, examined, clock } = this.#context
    if (!log.state.progress!.inDoubt) {
      await this.#note([], true)
      this.#isDoubtHere = true
    }
    const startedAt = clock.now()
    const position = this.#position
    const records = sentRecords(entries, log.state.progress!.device)
    let confirmation: Confirmation
    try {
      confirmation = await remote.append(records, { matchSeqNum: position, signal: this.#signal })
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      const outcome = attemptOutcome(error)
      if (outcome === 'conflict') {
        // The remote stream is shorter than the copy: another one, which the mirror notices.
        if (examined !== remote && error.seqNum !== undefined && error.seqNum < position) throw error
        this.#attemptMs = Math.max(clock.now() - startedAt, 0)
        this.#tailMin = error.seqNum ?? position
        this.#isContended = true
        return
      }
      if (outcome !== 'refused') throw error
      if (entries.length === 1) await log.append([parkedRecord(entries[0]!.number, error)], this.#signal)
      this.#isSingle = true
      return
    }
    this.#sentAt = clock.now()
    this.#attemptMs = Math.max(this.#sentAt - startedAt, 0)
    this.#countWriters([], confirmation.end.timestamp)
    this.#isContended = this.#writers.size > 0
    this.#context.onSent?.()
    // Entries leave the outbox only when a copy has them, so that a view never loses them.
    if (examined === remote) {
      this.#position = confirmation.end.seqNum
      await this.#note(confirmationsOf(entries, confirmation), true)
    } else await this.#examine(confirmation.end.seqNum)
    this.#isSingle = false
    await log.trim()
  }

  /** Finds the position of the next attempt. */
  async #locate(): Promise<void> {
    const { log, remote, examined, clock, random, wakeUps } = this.#context
    if (this.#isContended) {
      const delayMs = contentionMs(Math.max(this.#writers.size, 1), this.#attemptMs, random())
      await pauseUntil(clock, delayMs, this.#signal, wakeUps)
    }
    if (examined !== remote || this.#isContended) return this.#examine(this.#tailMin)
    // Nothing that was sent can be among the records before the tail.
    if (!log.state.progress!.inDoubt) {
      if (Math.abs(clock.now() - this.#sentAt) < FRESH_MS) return
      this.#position = (await remote.checkTail({ signal: this.#signal }).catch(emptyIfMissing)).seqNum
    } else if (this.#failures > 0) await this.#examine(0)
  }

  /** Examines records until the position is at the end of what can be read, and at least at a given one. */
  async #examine(least: number): Promise<void> {
    // If the read fails, the tail is looked up again.
    this.#tailMin = 0
    for (;;) {
      await this.#readOn(least)
      if (this.#position >= least) return
      await this.#copied()
    }
  }

  async #readOn(least: number): Promise<void> {
    const { examined, remote } = this.#context
    const isKnown = examined === remote && least > this.#position
    const tail = isKnown
      ? least
      : (await examined.checkTail({ signal: this.#signal }).catch(emptyIfMissing)).seqNum
    // The stream was deleted, and begins again. A late attempt could find its position there once more.
    if (tail < this.#position) {
      const { inDoubt } = this.#context.log.state.progress!
      if (inDoubt) await this.#parkAll()
      this.#position = 0
      // Views and later senders go by it.
      await this.#note([], inDoubt)
    }
    if (tail === this.#position) return
    const query = { seqNum: this.#position, clamp: true }
    for await (const batch of examined.read(query, { as: 'bytes', signal: this.#signal }).batches()) {
      await this.#examined(batch.records, batch.lastSeqNum + 1)
    }
    // Everything up to the tail was trimmed.
    if (this.#position < tail) await this.#examined([], tail)
  }

  async #examined(records: readonly SequencedRecord[], end: number): Promise<void> {
    const { log } = this.#context
    const first = records[0]?.seqNum ?? end
    if (first > this.#position && log.state.progress!.inDoubt) await this.#settleBefore(first)
    this.#position = end
    const last = records.at(-1)
    if (this.#isContended && last !== undefined) this.#countWriters(records, last.timestamp)
    const confirmed = confirmationsIn(log.state, records)
    if (confirmed.length > 0) await this.#note(confirmed, true)
  }

  /**
   * Settles what an attempt may have stored from the position up to `end`, where the copy has no records:
   * asks the server, or else parks the entries.
   */
  async #settleBefore(end: number): Promise<void> {
    const { log, remote } = this.#context
    const start = this.#position
    const query = { seqNum: start, count: BATCH_RECORDS_MAX, clamp: true }
    const { records } = await remote.readBatch(query, { as: 'bytes', signal: this.#signal })
    // A view has the records behind these only when its copy does.
    const confirmed = confirmationsIn(
      log.state,
      records.filter(({ seqNum }) => seqNum < end),
    )
    if (confirmed.length > 0) await this.#note(confirmed, true)
    const isKnown = this.#isDoubtHere || start + records.length >= end
    if (records[0]?.seqNum !== start || !isKnown) await this.#parkAll()
  }

  #countWriters(records: readonly SequencedRecord[], time: number): void {
    const { device } = this.#context.log.state.progress!
    this.#writers = recentWriters(this.#writers, records, device, time)
  }

  /** Parks all entries that an attempt may have stored among records that were trimmed. */
  async #parkAll(): Promise<void> {
    const { log } = this.#context
    const error = new HeadwaterError(
      'outcome_unknown',
      'the server removed records before it was known whether these were stored; retry or discard them',
    )
    const waiting = [...log.state.entries.values()].filter((entry) => entry.error === undefined)
    const notes = waiting.slice(0, 1_000).map(({ number }) => parkedRecord(number, error))
    if (notes.length > 0) await log.append(notes, this.#signal)
  }

  async #note(
    confirmed: readonly (readonly [number: number, confirmation: Confirmation])[],
    inDoubt: boolean,
  ): Promise<void> {
    const { log } = this.#context
    const { device } = log.state.progress!
    await log.append([progressRecord({ device, position: this.#position, inDoubt, confirmed })], this.#signal)
  }

  /** Waits until the copy has further records. */
  async #copied(): Promise<void> {
    const { examined } = this.#context
    const query = { seqNum: this.#position, clamp: true, waitMs: COPY_WAIT_MS }
    await examined.readBatch(query, { as: 'bytes', signal: this.#signal }).catch(async (error: unknown) => {
      if (!isStreamMissing(error)) throw error
      const { clock, wakeUps } = this.#context
      await pauseUntil(clock, COPY_WAIT_MS, this.#signal, wakeUps)
    })
  }
}

function emptyIfMissing(error: unknown): { readonly seqNum: number } {
  if (isStreamMissing(error)) return { seqNum: 0 }
  throw error
}
