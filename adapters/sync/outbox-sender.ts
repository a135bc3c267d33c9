import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { trimRecord } from '../../src/model/record.ts'
import { asHeadwaterError, sendOutcome } from '../../src/sync/failures.ts'
import {
  type AfterRefusal,
  contentionMs,
  entriesToSend,
  type OutboxStatus,
  sentRecords,
} from '../../src/sync/outbox.ts'
import {
  type Attempt,
  isWaiting,
  type LogRecord,
  nextEpoch,
  noteRecord,
  type OutboxEntry,
  outcomeUnknownError,
  type Progress,
  placesOf,
} from '../../src/sync/outbox-log.ts'
import { BackOff, pauseUntil, type WakeUps } from './activity.ts'
import { type OutboxLog, tailOrZero } from './outbox-log.ts'

/**
 * A position beyond every copy: where none is kept, entries leave the outbox as soon as they are confirmed.
 */
const NO_COPY = Number.MAX_SAFE_INTEGER
/** How often others may be faster before a batch is sent without a condition on the tail. */
const LOSSES_MAX = 3
/**
 * How often a batch that may be stored is rejected for its producer before it is parked: in about 5 minutes.
 */
const REJECTIONS_MAX = 16
/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** The environment of a sender of an outbox. */
export interface SenderContext {
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: OutboxStatus) => unknown
  readonly log: OutboxLog
  readonly remote: Stream
  /** The copy of the remote stream that a mirror keeps, and has compared; undefined if there is none. */
  readonly copy: Stream | undefined
  readonly afterRefusal: AfterRefusal
  /** Called after each batch that was sent. */
  readonly onSent: (() => void) | undefined
}

/** Sends the entries of an outbox, each exactly once on any server, as docs/sync-protocol.md describes. */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** The fencing token of the log; undefined until this sender has claimed it. */
  #token: string | undefined
  /** The tail of the stream when it became known last; it may have moved since. */
  #tail: number | undefined
  /** Whether the server has stored a batch of a producer since the last failure. */
  #isProven = false
  /** Whether batches are sent without a producer, because the server has rejected one. */
  #isPlain = false
  /** How often in succession others were faster. */
  #losses = 0
  /** How many entries a batch may have: 1 after a refusal, to find the refused one, then twice as many. */
  #entriesMax = Number.POSITIVE_INFINITY
  #trimmedTo = 0
  readonly #backOff: BackOff

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
    this.#backOff = new BackOff(context.log.clock, context.random)
  }

  /** Sends until the signal aborts, or an error occurs that only the app can resolve. */
  async run(): Promise<void> {
    const { log, onState, wakeUps } = this.#context
    const ignoreWakeUps = wakeUps(() => this.#backOff.wake(false))
    try {
      await log.loaded(this.#signal)
      while (!this.#signal.aborted) {
        if (this.#next().length === 0) {
          this.#entriesMax = Number.POSITIVE_INFINITY
          onState({ kind: 'idle' })
          await log.eventually(() => this.#next().length > 0, this.#signal)
        }
        onState({ kind: 'sending' })
        await this.#step().catch((error) => this.#recover(error))
      }
    } catch (error) {
      if (!this.#signal.aborted) onState({ kind: 'stopped', error: asHeadwaterError(error) })
    } finally {
      ignoreWakeUps()
    }
  }

  /** Waits after a failure. Throws what only the app can resolve. */
  async #recover(thrown: unknown): Promise<void> {
    const { log, onState } = this.#context
    this.#signal.throwIfAborted()
    if (log.end !== undefined) throw log.end
    const error = asHeadwaterError(thrown)
    // Another sender has claimed the log.
    if (error.code === 'fencing_token_mismatch') this.#token = undefined
    else if (!HeadwaterError.is(thrown) || sendOutcome(error) === 'stopped') throw error
    // The server may be another one now.
    this.#isPlain = this.#isProven = false
    this.#tail = undefined
    await this.#backOff.afterFailure(error, this.#signal, onState)
  }

  get #progress(): Progress {
    return this.#context.log.state.progress!
  }

  #next(): readonly OutboxEntry[] {
    const { log, afterRefusal } = this.#context
    return entriesToSend(log.state, afterRefusal, this.#entriesMax)
  }

  /** Sends one batch: the one that may be stored, or a new one. */
  async #step(): Promise<void> {
    const { log } = this.#context
    this.#token ??= await log.claim(this.#signal)
    const isRepeated = this.#progress.attempt !== undefined
    if (!isRepeated) await this.#begin()
    const { attempt } = this.#progress
    if (attempt !== undefined) {
      const entries = attempt.entries.map((number) => log.state.entries.get(number))
      const waiting = entries.filter((entry) => entry !== undefined && isWaiting(entry))
      // What was found before the attempt was noted is not sent.
      if (waiting.length < entries.length) await this.#note({ attempt: undefined })
      else await this.#send(attempt, waiting as OutboxEntry[], isRepeated)
    }
    this.#backOff.reset()
    this.#trimLog()
  }

  /** Chooses the next batch and its condition, and notes that it is being sent. */
  async #begin(): Promise<void> {
    const { log, remote, copy, random } = this.#context
    if (this.#losses > 0) {
      await pauseUntil(log.clock, contentionMs(this.#losses, random()), this.#signal)
      this.#signal.throwIfAborted()
      // Others may have appended meanwhile.
      this.#tail = undefined
    }
    const { batch } = this.#progress
    const storedFrom = this.#next()[0]?.position
    // A server that supports producers needs no condition on the tail, which others may move all the time.
    const needsNoTail = batch >= 0 && (this.#isProven || this.#losses >= LOSSES_MAX)
    const isAtTail = this.#isPlain || !needsNoTail || storedFrom !== undefined
    const position = this.#tail ?? (await tailOrZero(copy ?? remote, this.#signal))
    // The app sends again what may be stored: it is not above the tail that is required then.
    if (storedFrom !== undefined) await this.#findIn(storedFrom, position)
    const entries = this.#next().map(({ number }) => number)
    if (entries.length === 0) return
    await this.#note({
      attempt: { entries, position, isAtTail, batch: this.#isPlain ? undefined : batch + 1 },
    })
  }

  async #send(attempt: Attempt, entries: readonly OutboxEntry[], isRepeated: boolean): Promise<void> {
    const { remote, copy, onSent } = this.#context
    const { position, isAtTail, batch } = attempt
    const { device, producer: id, epoch } = this.#progress
    let ack: AppendAck
    try {
      ack = await remote.append(sentRecords(entries, device), {
        matchSeqNum: isAtTail ? position : undefined,
        producer: batch === undefined ? undefined : { id, epoch, seq: batch },
        signal: this.#signal,
      })
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      return this.#failed(error, attempt, isRepeated)
    }
    this.#isProven = batch !== undefined
    this.#tail = ack.tail.seqNum
    this.#losses = 0
    this.#entriesMax *= 2
    if (ack.duplicate) {
      // A mirror that was waiting for the stream goes on.
      onSent?.()
      if (await this.#settlesDuplicate(ack, entries)) return
    }
    // Without a copy, they leave at once.
    let copiedTo = copy === undefined ? NO_COPY : undefined
    if (isRepeated && copy !== undefined) copiedTo = await this.#tailOfLater(copy, ack.end.seqNum)
    const confirmed = placesOf(entries, [entries[0]!.number, ack])
    await this.#append([noteRecord('stored', { confirmed, copiedTo })])
    onSent?.()
  }

  /**
   * Examines the records that the server has taken a batch for: a device that was restored from a backup may
   * have sent another batch of the number. Resolves to false if they cannot be read: the server is believed.
   */
  async #settlesDuplicate({ start, end }: AppendAck, entries: readonly OutboxEntry[]): Promise<boolean> {
    // Some of the entries may be there, which does not tell that the others are.
    if (end.seqNum - start.seqNum !== recordsOf(entries)) await this.#note(nextEpoch(this.#progress))
    const first = await this.#findIn(start.seqNum, end.seqNum).catch((error) => {
      if (!isRefused(error)) throw error
    })
    if (this.#progress.attempt === undefined) return true
    if (first === start.seqNum) await this.#note(nextEpoch(this.#progress))
    return first === start.seqNum
  }

  /**
   * Resolves to the tail of a copy that begins at a position or behind it, because the app has begun it again
   * while an attempt was in doubt. Undefined if the copy has what is before the position, or gets it.
   */
  async #tailOfLater(copy: Stream, position: number): Promise<number | undefined> {
    const tail = await tailOrZero(copy, this.#signal)
    if (tail < position) return undefined
    const query = { seqNum: position - 1, count: 1, clamp: true }
    const { records } = await copy.readBatch(query, { as: 'bytes', signal: this.#signal })
    return records[0]?.seqNum === position - 1 ? undefined : tail
  }

  async #failed(error: HeadwaterError, attempt: Attempt, isRepeated: boolean): Promise<void> {
    const { entries, position, isAtTail, batch } = attempt
    const { epoch } = this.#progress
    const isDefinite = !isRepeated && !error.mayHaveEffects
    switch (sendOutcome(error)) {
      case 'conflict':
        // The server contradicts itself.
        if (!isAtTail || error.seqNum === position) throw error
        this.#losses++
        this.#tail = error.seqNum
        if (await this.#isAbsent(attempt, { tail: error.seqNum })) await this.#note({ attempt: undefined })
        return
      case 'forgotten': {
        const { producerEpoch = 0 } = error
        // The server contradicts itself: an epoch begins with batch 0.
        if (batch === 0 && producerEpoch <= epoch) throw error
        // A copy may be of an earlier stream, whose records the new one must not get.
        const isFinal = this.#context.copy === undefined
        if (isDefinite || (await this.#isAbsent(attempt, { isFinal })))
          await this.#note(nextEpoch({ ...this.#progress, epoch: Math.max(epoch, producerEpoch) }))
        return
      }
      case 'refused': {
        this.#entriesMax = 1
        const isAbsent = isDefinite || (await this.#isAbsent(attempt, { isFinal: true }))
        const parked = entries.length === 1 ? error : undefined
        // An earlier copy of the attempt may still be stored, before the next batch of the producer is.
        if (isAbsent) await this.#giveUp(attempt, isDefinite ? undefined : position, parked)
        return
      }
      case 'unsupported':
        if (batch === undefined) throw error
        // A proxy may still deliver it to a server that supports producers, so the tail stays the same.
        if (isAtTail)
          await this.#note({ ...nextEpoch(this.#progress), attempt: { ...attempt, batch: undefined } })
        else if (this.#backOff.failures < REJECTIONS_MAX) throw error
        else await this.#isAbsent(attempt)
        this.#isPlain = true
        return
      default:
        throw error
    }
  }

  /**
   * Examines the stream where an attempt could be stored. Resolves to true if it is not, and never will be:
   * the tail is not the one that it requires, or `isFinal` says that no copy of it can be stored. Otherwise
   * settles it: confirms it if it is found, and parks it if that cannot be known.
   */
  async #isAbsent(
    attempt: Attempt,
    { tail: known, isFinal = false }: { readonly tail?: number | undefined; readonly isFinal?: boolean } = {},
  ): Promise<boolean> {
    const { log, remote } = this.#context
    const { entries, position, isAtTail } = attempt
    try {
      const tail = known ?? (await tailOrZero(remote, this.#signal))
      if (tail < position) await this.#replaceStream()
      const records = recordsOf(entries.map((number) => log.state.entries.get(number)!))
      const end = isAtTail ? Math.min(tail, position + records) : tail
      const first = await this.#findIn(position, end)
      if (this.#progress.attempt === undefined) return false
      if (first === position && (isFinal || (isAtTail && tail > position))) return true
    } catch (error) {
      if (!isRefused(error)) throw error
    }
    await this.#giveUp(attempt, position, outcomeUnknownError())
    return false
  }

  /** Parks the attempt, because the stream is shorter than it was. Throws: the sender begins again. */
  async #replaceStream(): Promise<never> {
    await this.#context.log.replaceStream(this.#signal)
    this.#token = undefined
    throw new HeadwaterError('unavailable', 'the stream was deleted and created again')
  }

  /**
   * Confirms what is found in a part of the stream, or of its copy. Resolves to the first position that can
   * be read there.
   */
  async #findIn(from: number, to: number): Promise<number> {
    const { log, remote, copy } = this.#context
    if (from >= to) return from
    if (copy !== undefined) await this.#untilCopied(copy, to)
    let first: number | undefined
    try {
      const query = { seqNum: from, count: to - from, clamp: true }
      const read = (copy ?? remote).read(query, { as: 'bytes', signal: this.#signal })
      for await (const { records } of read.batches()) {
        first ??= records[0]?.seqNum
        const inside = records.filter(({ seqNum }) => seqNum < to)
        await log.found(inside, copy === undefined ? NO_COPY : 0, this.#signal)
      }
    } catch (error) {
      if (!isStreamMissing(error)) throw error
    }
    return first ?? to
  }

  /** Waits until a copy has everything below a sequence number. If its mirror ends, so does this sender. */
  async #untilCopied(copy: Stream, end: number): Promise<void> {
    const options = { as: 'bytes', signal: this.#signal } as const
    for (;;) {
      const seqNum = await tailOrZero(copy, this.#signal)
      if (seqNum >= end) return
      await copy.readBatch({ seqNum, clamp: true, waitMs: Number.POSITIVE_INFINITY }, options)
    }
  }

  /**
   * Ends an attempt that is not known to be stored. If it may be, it is at `position` or beyond. Its entries
   * are parked if there is an error, and wait otherwise.
   */
  async #giveUp({ entries: numbers }: Attempt, position?: number, parked?: HeadwaterError): Promise<void> {
    const reason = parked && { code: parked.code, message: parked.message }
    const ended = noteRecord('ended', { numbers, position, parked: reason })
    await this.#append([ended, noteRecord('progress', nextEpoch(this.#progress))])
  }

  async #note(changes: Partial<Progress>): Promise<void> {
    await this.#append([noteRecord('progress', { ...this.#progress, ...changes })])
  }

  async #append(records: readonly LogRecord[]): Promise<void> {
    await this.#context.log.append(records, { fencingToken: this.#token, signal: this.#signal })
  }

  /** Removes records of the log that are not needed any more, if there are enough of them. */
  #trimLog(): void {
    const { trimPoint } = this.#context.log.state
    if (this.#token === undefined || trimPoint - this.#trimmedTo < TRIMMED_RECORDS) return
    this.#trimmedTo = trimPoint
    // The next batch need not wait for it. If it fails, the next trim removes the same records.
    this.#append([trimRecord(trimPoint)]).catch(() => {})
  }
}

/** Whether the server refuses to show what it has stored. */
function isRefused(error: unknown): boolean {
  return HeadwaterError.is(error) && sendOutcome(error) === 'refused'
}

function recordsOf(entries: readonly OutboxEntry[]): number {
  return entries.reduce((sum, { records }) => sum + records.length, 0)
}
