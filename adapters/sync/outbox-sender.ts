import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import { attemptNote, type NextAttempt, nextAttempt, waitingEntries } from '../../src/sync/outbox-attempts.ts'
import { type LogRecord, type OutboxState, type Progress, progressRecord } from '../../src/sync/outbox-log.ts'
import {
  attemptOutcome,
  confirmationsIn,
  confirmationsOf,
  isEntryLeft,
  sentRecords,
  withoutConfirmed,
} from '../../src/sync/outbox-plan.ts'
import { Contention } from './contention.ts'
import { assertSamePosition, hasRecordIn, waitForCopy } from './examined-stream.ts'
import { KnownAttempts } from './known-attempts.ts'
import { trimLog } from './log-trim.ts'
import { pauseAfter, pauseUntil } from './pause.ts'
import { ProducerSupport } from './producer-support.ts'
import type { SenderContext } from './sender-context.ts'
import { mismatchedCopyError, tailOfCopied, tailOfExamined, tailOrZero } from './tails.ts'

export { discardParked, parkInDoubt, retryParked } from './parked-entries.ts'

/** How long the end of an acknowledged append counts as the tail, in milliseconds. */
const FRESH_MS = 1_000
/** How long after the last acknowledgement a batch continues its epoch, in milliseconds. */
const CONTINUED_MS = 60_000

/**
 * Sends the entries of an outbox, each exactly once on any server (see `outbox-attempts.ts`). At most one
 * attempt at a position takes effect, and a late one fails. A server stores an attempt without a position,
 * which has a producer, once or not at all.
 */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** Every record of the server's stream below this sequence number was examined. */
  #position = 0
  /** A lower bound of the tail: that of the error of a rejected attempt. */
  #tailMin = 0
  readonly #contention = new Contention()
  /** The time of the last acknowledgement. */
  #sentAt = Number.NEGATIVE_INFINITY
  #failures = 0
  /** Whether every attempt in doubt is at the position or below. */
  #isDoubtHere = false
  /** How many entries a batch may have: 1 after a refusal, to find the refused one, then twice as many. */
  #entriesMax = Number.POSITIVE_INFINITY
  readonly #attempts: KnownAttempts
  #acknowledgedAt: number | undefined
  #abandonedAt: number | undefined
  #epochMin = 0
  /** Whether the server may have stored records of batches other than the attempt at the position. */
  #mustExamine = false
  /** Whether the server has acknowledged the attempt, and the copy does not have its records yet. */
  #isAcknowledged = false
  /** Whether the copy has other records where an attempt was stored: those of a deleted stream. */
  #isInNewStream = false
  readonly #support: ProducerSupport

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#support = new ProducerSupport(context.clock)
    this.#attempts = new KnownAttempts(context.log, () => this.#recentlyAcknowledgedAt)
    this.#signal = signal
  }

  /** Sends until the signal aborts, or an error occurs that only the app can resolve. */
  async run(): Promise<void> {
    const { log, onState } = this.#context
    await log.eventually(() => log.state.progress !== undefined, this.#signal)
    while (!this.#signal.aborted) {
      const isIdle = this.#attempts.at !== undefined && this.#next() === undefined
      try {
        if (isIdle) await this.#idle()
        else {
          onState({ kind: 'sending' })
          await this.#begin()
          const next = this.#next()
          if (next !== undefined) await this.#send(next)
        }
        this.#failures = 0
      } catch (error) {
        if (this.#signal.aborted) return
        if (!HeadwaterError.is(error) || attemptOutcome(error) === 'stopped') {
          return onState({ kind: 'stopped', error: asHeadwaterError(error) })
        }
        // The server or the stream may be another one now.
        this.#support.forget()
        this.#contention.hasJustLost = false
        await pauseAfter(error, ++this.#failures, this.#context, this.#signal)
        continue
      }
      if (isIdle) await this.#attempts.idleUntil(() => this.#next() !== undefined, this.#signal)
    }
  }

  /** Reads the attempts of other senders, all of which the next attempt depends on. */
  async #begin(): Promise<void> {
    if (!(await this.#attempts.catchUp(this.#signal))) return
    const { position, inDoubt } = this.#context.log.state
    this.#position = position
    this.#isDoubtHere = !inDoubt
  }

  /** The place of the acknowledged attempt, unless the server may soon forget the producer. */
  get #recentlyAcknowledgedAt(): number | undefined {
    const isRecent = Math.abs(this.#context.clock.now() - this.#sentAt) < CONTINUED_MS
    return isRecent ? this.#acknowledgedAt : undefined
  }

  #next(
    state: OutboxState = this.#context.log.state,
    acknowledgedAt = this.#recentlyAcknowledgedAt,
    supportsProducers = false,
  ): NextAttempt | undefined {
    return nextAttempt(state, {
      afterRefusal: this.#context.afterRefusal,
      position: this.#position,
      supportsProducers,
      entriesMax: this.#entriesMax,
      acknowledgedAt,
      abandonedAt: this.#abandonedAt,
      epochMin: this.#epochMin,
    })
  }

  /** Stores that no attempt is in doubt, and removes entries that were sent. */
  async #idle(): Promise<void> {
    const { log, onState } = this.#context
    this.#entriesMax = Number.POSITIVE_INFINITY
    if (log.state.inDoubt && log.state.entries.size === 0) await this.#note([], false)
    await trimLog(log)
    onState({ kind: 'idle' })
  }

  async #send(planned: NextAttempt): Promise<void> {
    const { log, remote, clock } = this.#context
    if (this.#isInNewStream) throw mismatchedCopyError()
    let attempt: NextAttempt | undefined = planned
    if (planned.position !== undefined) {
      await this.#locate()
      const supportsProducers = await this.#canSkipCondition()
      attempt = this.#next(log.state, this.#recentlyAcknowledgedAt, supportsProducers)
    } else if (planned.seq === 0) {
      // A server that has forgotten the producer would store the batch again.
      if (!(await this.#examine())) return
      // A batch is stored completely or not at all: if only a part was found, the stream was created again.
      const { length } = waitingEntries(log.state, log.state.attempt)
      if (length > 0 && length < planned.entries.length) await this.#attempts.park(this.#signal)
      attempt = this.#next()
    }
    if (attempt === undefined || !(await this.#noted(attempt))) return
    const { device, producer: id } = log.state.progress!
    const at = this.#attempts.at!
    const { epoch, seq, entries, position: matchSeqNum } = attempt
    const isPlain = matchSeqNum !== undefined && this.#support.isRejected
    const producer = isPlain ? undefined : { id, epoch, seq }
    let confirmation: AppendAck
    try {
      const options = { matchSeqNum, producer, signal: this.#signal }
      const sent = remote.append(sentRecords(entries, device), options)
      confirmation = await this.#contention.attempt(clock, sent)
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      return this.#failed(error, attempt, at, isPlain)
    }
    this.#sentAt = clock.now()
    await this.#acknowledged(attempt, confirmation, at, isPlain)
  }

  /** Resolves to whether the next batch can be sent without a condition, which other writers compete for. */
  async #canSkipCondition(): Promise<boolean> {
    const { log, remote } = this.#context
    if (!this.#contention.hasJustLost || this.#support.isRejected) return false
    const next = this.#next(log.state, this.#recentlyAcknowledgedAt, true)
    if (next === undefined || next.position !== undefined) return false
    return this.#support.probe(remote, log.state.progress!.producer, this.#signal)
  }

  /** Writes an attempt to the log. Resolves to false if another sender has written one before. */
  async #noted(next: NextAttempt): Promise<boolean> {
    const { log } = this.#context
    if (!this.#attempts.isLast) return false
    const { inDoubt } = log.state
    this.#isDoubtHere = next.position !== undefined && (this.#isDoubtHere || !inDoubt)
    if (next.isNoted) {
      if (!inDoubt) await this.#note([], true)
      return this.#attempts.isLast
    }
    const { end } = await log.append([attemptNote(next, this.#attempts.at!)], this.#signal)
    return this.#attempts.add(end.seqNum - 1)
  }

  async #acknowledged({ entries }: NextAttempt, ack: AppendAck, at: number, isPlain: boolean): Promise<void> {
    const { log, remote, examined, onSent } = this.#context
    const { start, end, duplicate } = ack
    const left = () => confirmationsOf(entries, ack).filter(([number]) => log.state.entries.has(number))
    this.#contention.won(end.timestamp, log.state.progress!.device)
    this.#support.accept()
    onSent?.()
    // Entries leave the outbox only when a copy has them, so that a view never loses them.
    if (examined !== remote) {
      const isBelow = start.seqNum < this.#position
      if (!isBelow) {
        this.#isAcknowledged = true
        const isExamined = await this.#examine(end.seqNum).finally(() => (this.#isAcknowledged = false))
        // Nothing is in doubt then, so that later entries wait for a copy of the new stream.
        if (!isExamined) return this.#attempts.parkStored(this.#signal).then(() => this.#note([], false))
      }
      // If the copy has any of the entries, others were trimmed. A duplicate may have been trimmed earlier.
      const isFound = left().length < entries.length
      if ((isBelow && !duplicate) || (!isFound && (await hasRecordIn(examined, ack, this.#signal)))) {
        // The mirror will replace the copy, and the records will be found in the new one.
        this.#position = start.seqNum
        this.#isInNewStream = true
        return this.#note([], true)
      }
    }
    this.#entriesMax *= 2
    const confirmed = left()
    const acknowledgedAt = isPlain ? undefined : at
    const position = examined === remote ? Math.max(this.#position, end.seqNum) : this.#position
    if (confirmed.length === 0) this.#position = position
    else await this.#moveTo(position, () => this.#storeLeft(confirmed, at, acknowledgedAt))
    this.#isDoubtHere = true
    // Set only now, so that the next attempt contains none of its entries.
    this.#acknowledgedAt = acknowledgedAt
    // The next batch need not wait for it. If it fails, the next trim removes the same records.
    trimLog(log).catch(() => {})
  }

  /** Stores that entries have left the outbox, together with the next attempt. */
  async #storeLeft(confirmed: Progress['confirmed'], at: number, acknowledgedAt?: number): Promise<void> {
    const { log } = this.#context
    log.acknowledge(confirmed)
    const progress = this.#progress(confirmed)
    const next = this.#next(withoutConfirmed(log.state, confirmed), acknowledgedAt)
    if (next === undefined) return this.#attempts.storeSoon(progress, confirmed, acknowledgedAt, this.#signal)
    const note = next.isNoted ? [] : [attemptNote(next, at)]
    const { end } = await log.append([progress, ...note], this.#signal)
    if (note.length > 0) this.#attempts.add(end.seqNum - 1)
  }

  /** Moves the position, unless what was found below cannot be stored: it would be sent again. */
  async #moveTo(position: number, store: () => Promise<void>): Promise<void> {
    const before = this.#position
    this.#position = position
    await store().catch((error: unknown) => {
      this.#position = before
      throw error
    })
  }

  async #failed(
    error: HeadwaterError,
    { epoch, entries, position, isNoted }: NextAttempt,
    at: number,
    isPlain: boolean,
  ): Promise<void> {
    const outcome = attemptOutcome(error)
    const isConditional = position !== undefined
    if (outcome === 'conflict' && isConditional) {
      // There are no further records to examine: the stream is another one, or the server contradicts itself.
      const { seqNum = 0 } = error
      if (seqNum <= this.#position) throw error
      this.#tailMin = seqNum
      this.#contention.lost()
      this.#abandonedAt = at
    } else if (outcome === 'broken') {
      this.#abandonedAt = at
      this.#epochMin = Math.max(epoch, error.producerEpoch ?? 0) + 1
      this.#mustExamine = true
      // The first batch of an epoch continues nothing: the server contradicts itself.
      if (this.#support.rejectsEpochs()) throw error
    } else if (outcome === 'plain' && !isPlain && (isConditional || error.code === 'too_many_producers')) {
      this.#support.reject()
      // A late copy is not stored, unless the server forgets the producer at this moment, a week later.
      if (!isConditional) this.#abandonedAt = at
    } else if (outcome === 'plain' && !isConditional) {
      // A proxy may still deliver the batch to a server that supports producers.
      if (!this.#support.rejectsTooOften()) throw error
      await this.#examine(0)
      await this.#attempts.park(this.#signal)
      this.#abandonedAt = at
    } else if (outcome === 'refused' || outcome === 'plain') {
      // An earlier request, perhaps of another tab, may have stored them.
      if (isNoted || error.mayHaveEffects || this.#failures > 0)
        await this.#examine().catch((unread) => this.#attempts.parkUnread(unread, this.#signal))
      if (entries.length === 1) await this.#attempts.parkRefused(entries[0]!.number, error, this.#signal)
      this.#entriesMax = 1
      this.#abandonedAt = at
    } else throw error
  }

  /** Finds the position of the next attempt. */
  async #locate(): Promise<void> {
    const { log, remote, examined, isCopyLive, clock, random, wakeUps } = this.#context
    const { isPresent } = this.#contention
    if (isPresent) await pauseUntil(clock, this.#contention.pauseMs(random()), this.#signal, wakeUps)
    const isFresh = Math.abs(clock.now() - this.#sentAt) < FRESH_MS
    if (examined !== remote || isPresent) {
      await this.#examine(this.#tailMin)
      if (examined === remote || isCopyLive?.() !== false) return
      if (log.state.inDoubt) return assertSamePosition(this.#position, log.state.position)
      if (!isFresh) await this.#examine(await tailOfCopied(remote, this.#position, this.#signal))
      return
    }
    // Nothing that was sent can be among the records before the tail.
    if (!log.state.inDoubt) {
      if (isFresh) return
      this.#position = await tailOrZero(remote, this.#signal)
    } else if (this.#failures > 0 || this.#mustExamine) await this.#examine(0)
    this.#mustExamine = false
  }

  /**
   * Examines all records that can be read, and waits for them up to the position `least`, by default the
   * tail. Resolves to false if the server has fewer: its stream was deleted, and perhaps created again.
   */
  async #examine(given?: number): Promise<boolean> {
    const { examined, remote } = this.#context
    const least = given ?? (await tailOrZero(remote, this.#signal))
    // If the read fails, the tail is looked up again.
    this.#tailMin = 0
    for (;;) {
      await this.#readOn(least)
      if (this.#position >= least) return true
      if (await waitForCopy(examined, this.#position, this.#context, this.#signal)) continue
      // While the server cannot be reached, an acknowledged attempt must not become one in doubt.
      if ((await tailOrZero(remote, this.#signal).catch(() => least)) < least) return false
    }
  }

  async #readOn(least: number): Promise<void> {
    const { examined } = this.#context
    const tail = await tailOfExamined(this.#context, this.#position, least, this.#signal)
    // The stream was deleted and created again. The condition of a late attempt could hold there once more.
    if (tail < this.#position) {
      const { inDoubt } = this.#context.log.state
      if (inDoubt && !this.#isAcknowledged) await this.#attempts.park(this.#signal)
      this.#position = 0
      // Views and later senders use the position.
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
    const isInDoubt = log.state.inDoubt && !this.#isAcknowledged
    if (first > this.#position && isInDoubt)
      await this.#settleBefore(first, confirmationsIn(log.state, records))
    this.#contention.examined(records, log.state.progress!.device)
    const confirmed = confirmationsIn(log.state, records)
    if (confirmed.length === 0) this.#position = end
    else await this.#moveTo(end, () => this.#note(confirmed))
  }

  /**
   * Settles whether an attempt was stored between the position and `end`, where the copy has no records:
   * reads these from the server, and parks the entries that were not `found` if it no longer has them.
   */
  async #settleBefore(end: number, found: Progress['confirmed']): Promise<void> {
    const { log, remote } = this.#context
    const start = this.#position
    const query = { seqNum: start, count: BATCH_RECORDS_MAX, clamp: true }
    const { records } = await remote.readBatch(query, { as: 'bytes', signal: this.#signal })
    // A view gets the records from `end` on only when its copy has them.
    const before = records.filter(({ seqNum }) => seqNum < end)
    const confirmed = confirmationsIn(log.state, before)
    if (confirmed.length > 0) await this.#note(confirmed)
    const isKnown = this.#isDoubtHere || start + records.length >= end
    if (records[0]?.seqNum !== start || !isKnown) await this.#attempts.park(this.#signal, found)
  }

  async #note(confirmed: Progress['confirmed'], inDoubt?: boolean): Promise<void> {
    await this.#context.log.append([this.#progress(confirmed, inDoubt)], this.#signal)
  }

  /** Returns the progress as a record of the log. No attempt is in doubt if no entry is left. */
  #progress(
    confirmed: Progress['confirmed'],
    inDoubt = isEntryLeft(this.#context.log.state, confirmed),
  ): LogRecord {
    const { device, producer } = this.#context.log.state.progress!
    const attemptAt = this.#attempts.at!
    return progressRecord({ device, producer, attemptAt, position: this.#position, inDoubt, confirmed })
  }
}
