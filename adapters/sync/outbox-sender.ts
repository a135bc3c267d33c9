import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { trimRecord } from '../../src/model/record.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import {
  type AfterRefusal,
  contentionMs,
  entriesToSend,
  type OutboxStatus,
  sendOutcome,
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
import type { OutboxLog } from './outbox-log.ts'
import type { WakeUps } from './page-events.ts'
import { pauseUntil, tailOrZero } from './pause.ts'

/** How long the tail counts as known, in milliseconds. */
const FRESH_MS = 1_000
/** How long a server that has stored a batch of a producer is known to support producers, in milliseconds. */
const PROVEN_MS = 60_000
/** How long batches are sent without a producer after the server has rejected one, in milliseconds. */
const PLAIN_MS = 600_000
/** How often others may be faster before a batch is sent without a condition on the tail. */
const LOSSES_MAX = 3
/**
 * How often a batch that may be stored is rejected for its producer before it is parked: in about 5 minutes.
 */
const REJECTIONS_MAX = 16
/** How long the sender waits for a copy before it looks again, in milliseconds. */
const COPY_WAIT_MS = 10_000
/**
 * A position beyond every copy: where none is kept, entries leave the outbox as soon as they are confirmed.
 */
const NO_COPY = Number.MAX_SAFE_INTEGER
/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** The environment of a sender of an outbox. */
export interface SenderContext {
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: OutboxStatus) => unknown
  readonly log: OutboxLog
  readonly remote: Stream
  /** The copy of the remote stream that a mirror keeps; undefined if there is none. */
  readonly copy: Stream | undefined
  /** Whether the copy has everything that the server has, as far as its mirror knows. */
  readonly isCopyLive: (() => boolean) | undefined
  readonly afterRefusal: AfterRefusal
  readonly onSent: (() => void) | undefined
}

/** Sends the entries of an outbox, each exactly once on any server, as docs/sync-protocol.md describes. */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** The fencing token of the log; undefined until this sender has claimed it. */
  #token: string | undefined
  /** The tail when it became known last; it may have moved since. */
  #tail: { readonly seqNum: number; readonly at: number } | undefined
  #provenAt = Number.NEGATIVE_INFINITY
  #plainSince = Number.NEGATIVE_INFINITY
  /** How often in succession others were faster. */
  #losses = 0
  /** How many entries a batch may have: 1 after a refusal, to find the refused one, then twice as many. */
  #entriesMax = Number.POSITIVE_INFINITY
  #trimmedTo = 0
  #failures = 0

  constructor(context: SenderContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
  }

  /** Sends until the signal aborts, or an error occurs that only the app can resolve. */
  async run(): Promise<void> {
    const { log, onState } = this.#context
    try {
      await log.eventually(() => log.device !== undefined, this.#signal)
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
    }
  }

  /** Waits after a failure. Throws what only the app can resolve. */
  async #recover(thrown: unknown): Promise<void> {
    const { log, random, wakeUps, onState } = this.#context
    this.#signal.throwIfAborted()
    if (log.end !== undefined) throw log.end
    const error = asHeadwaterError(thrown)
    // Another sender has claimed the log.
    if (error.code === 'fencing_token_mismatch') this.#token = undefined
    else if (!HeadwaterError.is(thrown) || sendOutcome(error) === 'stopped') throw error
    // The server may be another one now.
    this.#plainSince = this.#provenAt = Number.NEGATIVE_INFINITY
    this.#tail = undefined
    const ms = backOffMs(++this.#failures, random(), error.retryAfterMs)
    onState({ kind: 'offline', error, nextAttemptAt: log.clock.now() + ms })
    // A server that says when is left alone until then.
    await pauseUntil(log.clock, ms, this.#signal, error.retryAfterMs === undefined ? wakeUps : undefined)
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
    this.#failures = 0
    this.#trimLog()
  }

  /** Chooses the next batch and its condition, and notes that it is being sent. */
  async #begin(): Promise<void> {
    const { log, random } = this.#context
    if (this.#losses > 0) {
      await pauseUntil(log.clock, contentionMs(this.#losses, random()), this.#signal)
      this.#signal.throwIfAborted()
    }
    const isPlain = this.#isRecent(this.#plainSince, PLAIN_MS)
    const { batch } = this.#progress
    // A server that supports producers needs no condition on the tail, which others may move all the time.
    const isOvertaken = this.#losses >= LOSSES_MAX && batch >= 0
    const isProven = isOvertaken || this.#isRecent(this.#provenAt, PROVEN_MS)
    const storedFrom = this.#next()[0]?.position
    const isAtTail = isPlain || !isProven || storedFrom !== undefined
    const position = await this.#locate(isAtTail)
    // The app sends again what may be stored: it is not above the tail that is required then.
    if (storedFrom !== undefined) await this.#findIn(storedFrom, position)
    const entries = this.#next().map(({ number }) => number)
    if (entries.length === 0) return
    await this.#note({ attempt: { entries, position, isAtTail, batch: isPlain ? undefined : batch + 1 } })
  }

  /** Finds the tail, or, if it need not be exact, a position that the tail cannot be below. */
  async #locate(isExact: boolean): Promise<number> {
    const { remote, copy, isCopyLive } = this.#context
    if (this.#tail !== undefined && (!isExact || this.#isRecent(this.#tail.at, FRESH_MS)))
      return this.#tail.seqNum
    return tailOrZero(copy !== undefined && isCopyLive?.() === true ? copy : remote, this.#signal)
  }

  async #send(attempt: Attempt, entries: readonly OutboxEntry[], isRepeated: boolean): Promise<void> {
    const { log, remote, copy, onSent } = this.#context
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
    const at = log.clock.now()
    if (batch !== undefined) this.#provenAt = at
    this.#tail = { seqNum: ack.tail.seqNum, at }
    this.#losses = 0
    this.#entriesMax *= 2
    onSent?.()
    // Without a copy, they leave at once.
    const copiedTo = copy === undefined ? NO_COPY : undefined
    const confirmed = placesOf(entries, [entries[0]!.number, ack])
    await this.#append([noteRecord('stored', { confirmed, copiedTo })])
  }

  async #failed(error: HeadwaterError, attempt: Attempt, isRepeated: boolean): Promise<void> {
    const { log, copy } = this.#context
    const { entries, position, isAtTail, batch } = attempt
    const { epoch } = this.#progress
    const isDefinite = !isRepeated && !error.mayHaveEffects
    switch (sendOutcome(error)) {
      case 'conflict':
        // The server contradicts itself.
        if (!isAtTail || error.seqNum === position) throw error
        this.#losses++
        this.#tail = undefined
        if (await this.#isAbsent(attempt, { tail: error.seqNum })) await this.#note({ attempt: undefined })
        return
      case 'forgotten': {
        const { producerEpoch = 0 } = error
        // The server contradicts itself: an epoch begins with batch 0.
        if (batch === 0 && producerEpoch <= epoch) throw error
        // A copy may be of an earlier stream, whose records the new one must not get.
        const canSendAgain = isDefinite || (await this.#isAbsent(attempt, { isFinal: copy === undefined }))
        if (canSendAgain) await this.#giveUp({ epoch: Math.max(epoch, producerEpoch) })
        return
      }
      case 'refused':
        this.#entriesMax = 1
        if (!isDefinite && !(await this.#isAbsent(attempt, { isFinal: true }))) return
        return entries.length > 1 ? this.#giveUp() : this.#park(attempt, error)
      case 'unsupported':
        if (batch === undefined) throw error
        // A proxy may still deliver it to a server that supports producers, so the tail stays the same.
        if (isAtTail)
          await this.#note({ ...nextEpoch(this.#progress), attempt: { ...attempt, batch: undefined } })
        else if (this.#failures < REJECTIONS_MAX) throw error
        else await this.#isAbsent(attempt)
        this.#plainSince = log.clock.now()
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
    const { position, isAtTail } = attempt
    try {
      const tail = known ?? (await tailOrZero(this.#context.remote, this.#signal))
      const isReadable = await this.#examine(attempt, tail)
      if (this.#progress.attempt === undefined) return false
      if (isReadable && (isFinal || (isAtTail && tail > position))) return true
    } catch (error) {
      // The server may refuse to show what it has stored.
      if (!HeadwaterError.is(error) || sendOutcome(error) !== 'refused') throw error
    }
    await this.#park(attempt, outcomeUnknownError(), attempt.position)
    return false
  }

  /** Confirms an attempt if it is found below the tail. Resolves to whether nothing was trimmed there. */
  async #examine({ entries, position, isAtTail }: Attempt, tail: number): Promise<boolean> {
    const { log, copy, isCopyLive } = this.#context
    if (this.#progress.attempt === undefined) return true
    if (tail < position) {
      // The mirror notices that the stream is another one, unless it had copied nothing.
      if (copy !== undefined && !isCopyLive?.()) throw mismatchedCopyError()
      await log.replaceStream(this.#signal)
      this.#token = undefined
      throw new HeadwaterError('unavailable', 'the stream was deleted and created again')
    }
    const records = entries.reduce((sum, number) => sum + log.state.entries.get(number)!.records.length, 0)
    const end = isAtTail ? Math.min(tail, position + records) : tail
    if (copy !== undefined) await this.#untilCopied(copy, end)
    return (await this.#findIn(position, end)) === position
  }

  /** Confirms what is found in a part of the stream. Resolves to its first position that can be read. */
  async #findIn(from: number, to: number): Promise<number> {
    const { log, remote, copy } = this.#context
    if (from >= to) return from
    let first: number | undefined
    try {
      const query = { seqNum: from, count: to - from, clamp: true }
      const read = remote.read(query, { as: 'bytes', signal: this.#signal })
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

  /** Waits until a copy has everything below a sequence number, and belongs to the stream. */
  async #untilCopied(copy: Stream, end: number): Promise<void> {
    for (let before = -1; ; ) {
      const seqNum = await tailOrZero(copy, this.#signal)
      if (seqNum >= end) break
      // The stream may be another one meanwhile, of which the copy has everything.
      if (seqNum === before) throw mismatchedCopyError()
      before = seqNum
      const query = { seqNum, clamp: true, waitMs: COPY_WAIT_MS }
      await copy.readBatch(query, { as: 'bytes', signal: this.#signal })
    }
    if (this.#context.isCopyLive?.() === false) throw mismatchedCopyError()
  }

  /** Parks the entries of an attempt. If they may be stored, it is at `position` or beyond. */
  async #park({ entries: numbers }: Attempt, error: HeadwaterError, position?: number): Promise<void> {
    const { code, message } = error
    await this.#giveUp({}, noteRecord('parked', { numbers, code, message, position }))
  }

  /** Ends an attempt that is not known to be stored. */
  async #giveUp(changes: Partial<Progress> = {}, ...notes: readonly LogRecord[]): Promise<void> {
    this.#provenAt = Number.NEGATIVE_INFINITY
    const progress = nextEpoch({ ...this.#progress, ...changes })
    await this.#append([...notes, noteRecord('progress', progress)])
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

  #isRecent(at: number, ms: number): boolean {
    return Math.abs(this.#context.log.clock.now() - at) < ms
  }
}

/** Returns the error of a sender that waits until the mirror has compared the copy, or replaced it. */
function mismatchedCopyError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the local copy does not match the stream of the server yet')
}
