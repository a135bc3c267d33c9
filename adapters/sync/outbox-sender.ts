import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import { asHeadwaterError, isStreamMissing } from '../../src/sync/errors.ts'
import { attemptNote, type NextAttempt, nextAttempt, waitingEntries } from '../../src/sync/outbox-attempts.ts'
import {
  type Confirmation,
  type LogRecord,
  type OutboxState,
  type Progress,
  parkedRecord,
  progressRecord,
} from '../../src/sync/outbox-log.ts'
import {
  type AfterRefusal,
  attemptOutcome,
  confirmationsIn,
  confirmationsOf,
  type RecentWriters,
  recentWriters,
  sentRecords,
} from '../../src/sync/outbox-plan.ts'
import type { OutboxLog } from './outbox-log.ts'
import { type PauseContext, pauseAfter, pauseUntil } from './pause.ts'

/** How long the end of an acknowledged append passes for the tail, in milliseconds. */
const FRESH_MS = 1_000
/** How long after the last acknowledgement a batch continues its epoch, in milliseconds. */
const CONTINUED_MS = 60_000
/** How long batches are sent without a producer to a server that rejects producers, in milliseconds. */
const PLAIN_MS = 600_000
/** How often a batch that only a server with producers can store is sent to one without, at most. */
const IGNORED_MAX = 16
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
 * takes effect, and a late one fails; and none contains a record that is stored below. Once a server has
 * acknowledged such an attempt as that of a producer, it keeps those that follow from being stored twice.
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
  /** The log was read. */
  #isReady = false
  /** What is known of the last attempt: see {@link AttemptKnowledge}. */
  #acknowledgedAt: number | undefined
  #abandonedAt: number | undefined
  #epochMin = 0
  /** The server may have stored records of other batches than of the attempt at the position. */
  #mustExamine = false
  /** The server has acknowledged the attempt, whose records are awaited in the copy. */
  #isAcknowledged = false
  /** The time at which the server has rejected producers. */
  #plainAt: number | undefined
  /** How often a batch without a condition was rejected by a server without producers, in succession. */
  #ignoredCount = 0

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
  }

  /** Sends until the signal aborts, or until only the app can go on. */
  async run(): Promise<void> {
    const { log, onState } = this.#context
    await log.eventually(() => log.state.progress !== undefined, this.#signal)
    while (!this.#signal.aborted) {
      if (this.#isReady && this.#next() === undefined) {
        await this.#idle()
        onState({ kind: 'idle' })
        await log.eventually(() => this.#next() !== undefined, this.#signal)
      }
      try {
        onState({ kind: 'sending' })
        await this.#begin()
        if (this.#next() !== undefined) await this.#send()
        this.#failures = 0
      } catch (error) {
        if (this.#signal.aborted) return
        if (!HeadwaterError.is(error) || attemptOutcome(error) === 'stopped') {
          onState({ kind: 'stopped', error: asHeadwaterError(error) })
          return
        }
        // The server may be another one now.
        this.#plainAt = undefined
        await pauseAfter(error, ++this.#failures, this.#context, this.#signal)
      }
    }
  }

  /** Reads what earlier senders have left. A decision about the next attempt needs all of it. */
  async #begin(): Promise<void> {
    if (this.#isReady) return
    const { log } = this.#context
    await log.caughtUp(this.#signal)
    this.#position = log.state.progress!.position
    this.#isDoubtHere = !log.state.progress!.inDoubt
    this.#isReady = true
  }

  #next(
    state: OutboxState = this.#context.log.state,
    acknowledgedAt = this.#acknowledgedAt,
  ): NextAttempt | undefined {
    const { clock, afterRefusal } = this.#context
    const isRecent = Math.abs(clock.now() - this.#sentAt) < CONTINUED_MS
    return nextAttempt(state, {
      afterRefusal,
      isSingle: this.#isSingle,
      acknowledgedAt: isRecent ? acknowledgedAt : undefined,
      abandonedAt: this.#abandonedAt,
      epochMin: this.#epochMin,
    })
  }

  /** Notes that no attempt is in doubt any more, and removes what was sent. */
  async #idle(): Promise<void> {
    const { log } = this.#context
    this.#isSingle = false
    if (log.state.progress!.inDoubt && log.state.entries.size === 0) await this.#note([], false)
    await log.trim()
  }

  async #send(): Promise<void> {
    // Only batch 0 of an epoch is conditional on the position.
    if (this.#next()?.seq === 0) await this.#locate()
    const attempt = this.#next()
    if (attempt === undefined || !(await this.#noted(attempt))) return
    const { log, remote, clock } = this.#context
    const { device } = log.state.progress!
    const { at } = log.state.attempt!
    const startedAt = clock.now()
    const isConditional = attempt.seq === 0
    const isPlain = isConditional && this.#isPlain
    const { epoch, seq, entries } = attempt
    const conditions = {
      matchSeqNum: isConditional ? this.#position : undefined,
      producer: isPlain ? undefined : { id: device, epoch, seq },
    }
    let confirmation: Confirmation
    try {
      confirmation = await remote.append(sentRecords(entries, device), {
        ...conditions,
        signal: this.#signal,
      })
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      this.#attemptMs = Math.max(clock.now() - startedAt, 0)
      return this.#failed(error, attempt, at, isPlain)
    }
    this.#sentAt = clock.now()
    this.#attemptMs = Math.max(this.#sentAt - startedAt, 0)
    await this.#stored(attempt, confirmation, at, isPlain)
  }

  /** Writes an attempt to the log. Resolves to whether it is the next one, and not that of another sender. */
  async #noted({ epoch, seq, entries, isNoted }: NextAttempt): Promise<boolean> {
    const { log } = this.#context
    const { inDoubt } = log.state.progress!
    this.#isDoubtHere = seq === 0 && (this.#isDoubtHere || !inDoubt)
    const notes = inDoubt ? [] : [this.#progress([], true)]
    if (!isNoted) notes.push(attemptNote({ epoch, seq, entries }, log.state))
    if (notes.length === 0) return true
    const { end } = await log.append(notes, this.#signal)
    const { attempt } = log.state
    return isNoted ? attempt!.epoch === epoch && attempt!.seq === seq : attempt!.at === end.seqNum - 1
  }

  async #stored(
    { entries }: NextAttempt,
    confirmation: Confirmation,
    at: number,
    isPlain: boolean,
  ): Promise<void> {
    const { log, remote, examined, onSent } = this.#context
    const { end } = confirmation
    this.#countWriters([], end.timestamp)
    this.#isContended = this.#writers.size > 0
    this.#ignoredCount = 0
    onSent?.()
    // Entries leave the outbox only when a copy has them, so that a view never loses them.
    if (examined !== remote) {
      this.#isAcknowledged = true
      await this.#examine(end.seqNum).finally(() => {
        this.#isAcknowledged = false
      })
    } else this.#position = Math.max(this.#position, end.seqNum)
    this.#isDoubtHere = true
    this.#isSingle = false
    const confirmed = confirmationsOf(entries, confirmation).filter(([number]) =>
      log.state.entries.has(number),
    )
    const acknowledgedAt = isPlain ? undefined : at
    if (confirmed.length > 0) {
      const entries = new Map(log.state.entries)
      for (const [number] of confirmed) entries.delete(number)
      // The next attempt is written together with the confirmation of this one.
      const next = this.#next({ ...log.state, entries }, acknowledgedAt)
      const isFirst = next !== undefined && !next.isNoted && log.state.attempt!.at === at
      const notes = [this.#progress(confirmed, true), ...(isFirst ? [attemptNote(next, log.state)] : [])]
      await log.append(notes, this.#signal)
    }
    // Only now none of its entries can be in the next one.
    this.#acknowledgedAt = acknowledgedAt
    await log.trim()
  }

  async #failed(
    error: HeadwaterError,
    { seq, epoch, entries }: NextAttempt,
    at: number,
    isPlain: boolean,
  ): Promise<void> {
    const { log, remote, examined, clock } = this.#context
    const outcome = attemptOutcome(error)
    if (outcome === 'conflict' && seq === 0) {
      // The remote stream is shorter than the copy: another one, which the mirror notices.
      const isShorter = error.seqNum !== undefined && error.seqNum < this.#position
      if (examined !== remote && isShorter) throw error
      this.#tailMin = error.seqNum ?? this.#position
      this.#isContended = true
      this.#abandonedAt = at
    } else if (outcome === 'broken') {
      this.#abandonedAt = at
      this.#epochMin = Math.max(epoch, error.producerEpoch ?? 0) + 1
      this.#mustExamine = true
    } else if (outcome === 'plain' && seq === 0 && !isPlain) {
      this.#plainAt = clock.now()
    } else if (outcome === 'plain' && seq > 0) {
      // A server that knows producers may still get the batch from a proxy.
      if (++this.#ignoredCount < IGNORED_MAX) throw error
      this.#ignoredCount = 0
      await this.#examine(0)
      await this.#park()
    } else if (outcome === 'refused' || outcome === 'plain') {
      if (entries.length === 1) await log.append([parkedRecord(entries[0]!.number, error)], this.#signal)
      this.#isSingle = true
      this.#abandonedAt = at
    } else throw error
  }

  get #isPlain(): boolean {
    const { clock } = this.#context
    return this.#plainAt !== undefined && Math.abs(clock.now() - this.#plainAt) < PLAIN_MS
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
    } else if (this.#failures > 0 || this.#mustExamine) await this.#examine(0)
    this.#mustExamine = false
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
      if (inDoubt) await this.#park()
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
    const isInDoubt = log.state.progress!.inDoubt && !this.#isAcknowledged
    if (first > this.#position && isInDoubt) await this.#settleBefore(first)
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
    if (records[0]?.seqNum !== start || !isKnown) await this.#park()
  }

  #countWriters(records: readonly SequencedRecord[], time: number): void {
    const { device } = this.#context.log.state.progress!
    this.#writers = recentWriters(this.#writers, records, device, time)
  }

  /** Parks the entries of the last attempt, which may have been stored among records that were removed. */
  async #park(): Promise<void> {
    const { log } = this.#context
    const error = new HeadwaterError(
      'outcome_unknown',
      'it cannot be known whether the server has stored these records; retry or discard them',
    )
    const waiting = waitingEntries(log.state, log.state.attempt)
    const notes = waiting.slice(0, BATCH_RECORDS_MAX).map(({ number }) => parkedRecord(number, error))
    if (notes.length > 0) await log.append(notes, this.#signal)
  }

  async #note(confirmed: Progress['confirmed'], inDoubt: boolean): Promise<void> {
    await this.#context.log.append([this.#progress(confirmed, inDoubt)], this.#signal)
  }

  #progress(confirmed: Progress['confirmed'], inDoubt: boolean): LogRecord {
    const { device } = this.#context.log.state.progress!
    return progressRecord({ device, position: this.#position, inDoubt, confirmed })
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
