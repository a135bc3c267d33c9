import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import {
  attemptNote,
  type NextAttempt,
  nextAttempt,
  parkingNotes,
  waitingEntries,
} from '../../src/sync/outbox-attempts.ts'
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
  sentRecords,
} from '../../src/sync/outbox-plan.ts'
import { Contention } from './contention.ts'
import { recordsCopied, tailOrStart } from './examined-stream.ts'
import type { OutboxLog } from './outbox-log.ts'
import { type PauseContext, pauseAfter, pauseUntil } from './pause.ts'
import { ProducerSupport } from './producer-support.ts'

/** How long the end of an acknowledged append passes for the tail, in milliseconds. */
const FRESH_MS = 1_000
/** How long after the last acknowledgement a batch continues its epoch, in milliseconds. */
const CONTINUED_MS = 60_000
/** How often a batch that only a server with producers can store is sent to one without, at most. */
const IGNORED_MAX = 16

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
 * takes effect, and a late one fails; and none contains a record that is stored below. An attempt without a
 * position is one of a producer, which servers store once or not at all.
 */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** Every record below was examined. */
  #position = 0
  /** The tail as far as a rejected attempt told it. */
  #tailMin = 0
  readonly #contention = new Contention()
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
  /** The place of an attempt that was stored where the copy has a stream that was deleted since. */
  #restartedAt: number | undefined
  readonly #support: ProducerSupport
  /** How often a batch without a condition was rejected by a server without producers, in succession. */
  #ignoredCount = 0

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#support = new ProducerSupport(context.clock)
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
        // The server may be another one now, or the stream.
        this.#support.forget()
        this.#contention.isBeaten = false
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
    isOffered = false,
  ): NextAttempt | undefined {
    const { clock, afterRefusal } = this.#context
    const isRecent = Math.abs(clock.now() - this.#sentAt) < CONTINUED_MS
    return nextAttempt(state, {
      afterRefusal,
      position: this.#position,
      isOffered,
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
    const { log, remote, clock } = this.#context
    const planned = this.#next()
    let isOffered = false
    if (planned?.position !== undefined) {
      await this.#locate()
      isOffered = await this.#isOffered()
    } else if (planned?.seq === 0) {
      // A server that has forgotten the producer would store the batch again.
      await this.#examine(await tailOrStart(remote, this.#signal))
      // A part was found of what is stored as a whole: the rest is in a stream that was created again.
      const { length } = waitingEntries(log.state, log.state.attempt)
      if (length > 0 && length < planned.entries.length) await this.#park()
    }
    const attempt = this.#next(log.state, this.#acknowledgedAt, isOffered)
    if (attempt === undefined || !(await this.#noted(attempt))) return
    const { device } = log.state.progress!
    const { at } = log.state.attempt!
    const startedAt = clock.now()
    const { epoch, seq, entries, position: matchSeqNum } = attempt
    const isPlain = matchSeqNum !== undefined && this.#support.isRejected
    const producer = isPlain ? undefined : { id: device, epoch, seq }
    let confirmation: Confirmation
    try {
      confirmation = await remote.append(sentRecords(entries, device), {
        matchSeqNum,
        producer,
        signal: this.#signal,
      })
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      this.#contention.attemptMs = Math.max(clock.now() - startedAt, 0)
      return this.#failed(error, attempt, at, isPlain)
    }
    this.#sentAt = clock.now()
    this.#contention.attemptMs = Math.max(this.#sentAt - startedAt, 0)
    await this.#stored(attempt, confirmation, at, isPlain)
  }

  /** Whether the next batch needs no condition, which it would compete for: asks the server. */
  async #isOffered(): Promise<boolean> {
    const { log, remote } = this.#context
    if (!this.#contention.isBeaten || this.#support.isRejected) return false
    const next = this.#next(log.state, this.#acknowledgedAt, true)
    if (next === undefined || next.position !== undefined) return false
    return this.#support.isOffered(remote, log.state.progress!.device, this.#signal)
  }

  /** Writes an attempt to the log. Resolves to whether it is the next one, and not that of another sender. */
  async #noted(next: NextAttempt): Promise<boolean> {
    const { epoch, seq, position, isNoted } = next
    const { log } = this.#context
    const { inDoubt } = log.state.progress!
    this.#isDoubtHere = position !== undefined && (this.#isDoubtHere || !inDoubt)
    const notes = inDoubt ? [] : [this.#progress([], true)]
    if (!isNoted) notes.push(attemptNote(next, log.state))
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
    const { start, end } = confirmation
    this.#contention.won(end.timestamp, log.state.progress!.device)
    this.#ignoredCount = 0
    onSent?.()
    // Entries leave the outbox only when a copy has them, so that a view never loses them.
    if (examined !== remote) {
      if (start.seqNum < this.#position) {
        // The mirror replaces the copy, where the records are found then.
        this.#position = start.seqNum
        this.#restartedAt = at
        await this.#note([], true)
        throw new HeadwaterError('unavailable', 'the copy is of a stream that was deleted')
      }
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
    { epoch, entries, position }: NextAttempt,
    at: number,
    isPlain: boolean,
  ): Promise<void> {
    const { log } = this.#context
    const outcome = attemptOutcome(error)
    const isConditional = position !== undefined
    if (outcome === 'conflict' && isConditional) {
      // Nothing is left to examine first: the remote stream is another one, or the server contradicts itself.
      const { seqNum = 0 } = error
      if (seqNum <= this.#position) throw error
      this.#tailMin = seqNum
      this.#contention.lost()
      this.#abandonedAt = at
    } else if (outcome === 'broken') {
      this.#abandonedAt = at
      this.#epochMin = Math.max(epoch, error.producerEpoch ?? 0) + 1
      this.#mustExamine = true
    } else if (outcome === 'plain' && !isPlain && (isConditional || error.code === 'too_many_producers')) {
      this.#support.reject()
      // No copy is stored later, unless the server forgets a producer of a week ago in that moment.
      if (!isConditional) this.#abandonedAt = at
    } else if (outcome === 'plain' && !isConditional) {
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

  /** Finds the position of the next attempt. */
  async #locate(): Promise<void> {
    const { log, remote, examined, clock, random, wakeUps } = this.#context
    const { isPresent } = this.#contention
    if (isPresent) await pauseUntil(clock, this.#contention.pauseMs(random()), this.#signal, wakeUps)
    if (examined !== remote || isPresent) return this.#examine(this.#tailMin)
    // Nothing that was sent can be among the records before the tail.
    if (!log.state.progress!.inDoubt) {
      if (Math.abs(clock.now() - this.#sentAt) < FRESH_MS) return
      this.#position = await tailOrStart(remote, this.#signal)
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
      await recordsCopied(this.#context.examined, this.#position, this.#context, this.#signal)
    }
  }

  async #readOn(least: number): Promise<void> {
    const { examined, remote } = this.#context
    const isKnown = examined === remote && least > this.#position
    const tail = isKnown ? least : await tailOrStart(examined, this.#signal)
    // The stream was deleted, and begins again. A late attempt could find its position there once more.
    if (tail < this.#position) {
      const { attempt, progress } = this.#context.log.state
      const { inDoubt } = progress!
      const isStored = this.#isAcknowledged || (attempt !== undefined && attempt.at === this.#restartedAt)
      if (inDoubt && !isStored) await this.#park()
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
    this.#contention.examined(records, log.state.progress!.device)
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

  /** Parks the entries of the last attempt, which may have been stored among records that were removed. */
  async #park(): Promise<void> {
    const { log } = this.#context
    const notes = parkingNotes(log.state)
    if (notes.length > 0) await log.append(notes, this.#signal)
  }

  async #note(confirmed: Progress['confirmed'], inDoubt: boolean): Promise<void> {
    await this.#context.log.append([this.#progress(confirmed, inDoubt)], this.#signal)
  }

  #progress(confirmed: Progress['confirmed'], inDoubt: boolean): LogRecord {
    const { device } = this.#context.log.state.progress!
    return progressRecord({ device, position: this.#position, inDoubt, confirmed })
  }
}
