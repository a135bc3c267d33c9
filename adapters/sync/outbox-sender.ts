import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { trimRecord } from '../../src/model/record.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import {
  type AfterRefusal,
  confirmationsOf,
  contentionMs,
  entriesToSend,
  type SenderState,
  sendOutcome,
  sentRecords,
  storedEntries,
} from '../../src/sync/outbox.ts'
import {
  type Confirmed,
  entriesInDoubt,
  isDoubtFound,
  isWaiting,
  type OutboxEntry,
  outcomeUnknownError,
  type Progress,
  parkedRecord,
  progressRecord,
  storedRecord,
  trimPoint,
} from '../../src/sync/outbox-log.ts'
import type { OutboxLog } from './outbox-log.ts'
import type { WakeUps } from './page-events.ts'
import { pauseUntil, tailOrZero } from './pause.ts'

/** How long the end of an acknowledged append counts as the tail, in milliseconds. */
const FRESH_MS = 1_000
/** How long a server that has stored a batch of a producer is known to support producers, in milliseconds. */
const PROVEN_MS = 60_000
/** How long batches are sent without a producer after the server has rejected one, in milliseconds. */
const PLAIN_MS = 600_000
/** How often others may be faster before a batch is sent without a condition on the tail. */
const LOSSES_MAX = 3
/** How often a batch in doubt may be rejected for its producer before it is parked: in about 5 minutes. */
const REJECTIONS_MAX = 16
/** How long the sender waits for a copy before it looks again, in milliseconds. */
const COPY_WAIT_MS = 10_000
/** A position beyond every copy: where none is kept, entries leave the outbox as soon as they are confirmed. */
const NO_COPY = Number.MAX_SAFE_INTEGER
/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** The environment of a sender of an outbox. */
export interface SenderContext {
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: SenderState) => void
  readonly log: OutboxLog
  readonly remote: Stream
  /** The copy of the remote stream that a mirror keeps; undefined if there is none. */
  readonly copy: Stream | undefined
  /** Whether the copy has everything that the server has, as far as its mirror knows. */
  readonly isCopyLive: (() => boolean) | undefined
  readonly afterRefusal: AfterRefusal
  readonly onSent: (() => void) | undefined
}

/** A batch of which an attempt may have been stored. */
interface Attempt {
  readonly entries: readonly OutboxEntry[]
  /** The tail that it is conditional on; undefined if it is conditional on the batch before alone. */
  readonly matchSeqNum: number | undefined
  /** Its number among those of the producer; undefined without a producer. */
  readonly batch: number | undefined
  /** Whether an earlier attempt was in doubt when it was sent. */
  readonly isInDoubt: boolean
  /**
   * The tail before it was sent, if no attempt in doubt has any of its entries: those were found. Undefined
   * otherwise.
   */
  readonly after: number | undefined
}

/** Sends the entries of an outbox, each exactly once on any server, as docs/sync-protocol.md describes. */
export class OutboxSender {
  readonly #context: SenderContext
  readonly #signal: AbortSignal
  /** The fencing token of the log; undefined until this sender has claimed it. */
  #token: string | undefined
  /** Whether an attempt may have been stored whose entries still wait. */
  #isInDoubt = false
  /** The highest tail that an attempt was conditional on; undefined if that is not known. */
  #attemptedAt: number | undefined = 0
  /** The tail, if it became known a short time ago. */
  #tail: { readonly seqNum: number; readonly at: number } | undefined
  #provenAt = Number.NEGATIVE_INFINITY
  #plainSince = Number.NEGATIVE_INFINITY
  /** How often in succession the server rejected the producer of a batch in doubt. */
  #rejections = 0
  /** How often in succession others were faster. */
  #losses = 0
  /** How long the last attempt took, in milliseconds. */
  #attemptMs = 0
  /** Whether the server has forgotten a producer since it stored a batch. */
  #hasForgotten = false
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
        try {
          if (this.#next().length > 0) await this.#step()
          else await this.#rest()
        } catch (error) {
          await this.#recover(error)
        }
      }
    } catch (error) {
      if (!this.#signal.aborted) onState({ kind: 'stopped', error: asHeadwaterError(error) })
    }
  }

  /** Waits until there is something to send. */
  async #rest(): Promise<void> {
    const { log, onState } = this.#context
    this.#entriesMax = Number.POSITIVE_INFINITY
    this.#trimLog()
    onState({ kind: 'idle' })
    await log.eventually(() => this.#next().length > 0, this.#signal)
  }

  /** Takes the log over from other senders. */
  async #claim(): Promise<void> {
    const { log } = this.#context
    this.#token = await log.claim(this.#signal)
    this.#isInDoubt = entriesInDoubt(log.state).length > 0
    this.#attemptedAt = this.#isInDoubt ? undefined : 0
  }

  /** Waits after a failure. Throws what only the app can resolve. */
  async #recover(thrown: unknown): Promise<void> {
    const { log } = this.#context
    this.#signal.throwIfAborted()
    if (log.end !== undefined) throw log.end
    const error = asHeadwaterError(thrown)
    // Another sender has claimed the log.
    if (error.code === 'fencing_token_mismatch') this.#token = undefined
    else if (!HeadwaterError.is(thrown) || sendOutcome(error) === 'stopped') throw error
    // The server may be another one now.
    this.#plainSince = this.#provenAt = Number.NEGATIVE_INFINITY
    this.#tail = undefined
    const { clock, random, wakeUps, onState } = this.#context
    const ms = backOffMs(++this.#failures, random(), error.retryAfterMs)
    onState({ kind: 'offline', error, nextAttemptAt: clock.now() + ms })
    // A server that says when is left alone until then.
    await pauseUntil(clock, ms, this.#signal, error.retryAfterMs === undefined ? wakeUps : undefined)
  }

  get #progress(): Progress {
    return this.#context.log.state.progress!
  }

  #next(): readonly OutboxEntry[] {
    const { log, afterRefusal } = this.#context
    return entriesToSend(log.state, afterRefusal, this.#entriesMax)
  }

  /** Sends one batch. */
  async #step(): Promise<void> {
    const { log, remote, onState } = this.#context
    onState({ kind: 'sending' })
    if (this.#token === undefined) await this.#claim()
    if (this.#losses > 0) await this.#letOthersPass()
    const isPlain = this.#isRecent(this.#plainSince, PLAIN_MS)
    const examined = this.#isInDoubt && this.#progress.mode === 'tail' ? await this.#examine() : undefined
    const mode = this.#modeOf(isPlain)
    const matchSeqNum = mode === 'tail' ? (examined ?? (await this.#locate())) : undefined
    // What was examined may have been found.
    const entries = this.#next()
    if (entries.length > 0) {
      const batch = isPlain && mode === 'tail' ? undefined : this.#progress.batch + 1
      const after = isDoubtFound(log.state)
        ? (matchSeqNum ?? (await tailOrZero(remote, this.#signal)))
        : undefined
      await this.#mark(entries, mode, matchSeqNum)
      await this.#attempt({ entries, matchSeqNum, batch, isInDoubt: this.#isInDoubt, after })
    }
    this.#failures = 0
  }

  async #attempt(attempt: Attempt): Promise<void> {
    const { remote, clock } = this.#context
    const { entries, matchSeqNum, batch } = attempt
    const { device, producer: id } = this.#progress
    this.#isInDoubt = true
    if (!attempt.isInDoubt) this.#rejections = 0
    if (matchSeqNum !== undefined && this.#attemptedAt !== undefined)
      this.#attemptedAt = Math.max(this.#attemptedAt, matchSeqNum)
    const startedAt = clock.now()
    let ack: AppendAck
    try {
      ack = await remote.append(sentRecords(entries, device), {
        matchSeqNum,
        producer: batch === undefined ? undefined : { id, epoch: 0, seq: batch },
        signal: this.#signal,
      })
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      this.#attemptMs = Math.max(clock.now() - startedAt, 0)
      return this.#failed(error, attempt)
    }
    await this.#stored(ack, attempt)
  }

  /**
   * Decides what the next attempt is conditional on. As long as an attempt is in doubt, that stays the same.
   * Otherwise it is the tail, unless the server is known to support producers, or has supported them and others
   * were too fast.
   */
  #modeOf(isPlain: boolean): Progress['mode'] {
    if (this.#isInDoubt) return this.#progress.mode
    if (isPlain) return 'tail'
    const isProven = this.#isRecent(this.#provenAt, PROVEN_MS)
    const isOvertaken = this.#losses >= LOSSES_MAX && this.#progress.batch >= 0
    return isProven || isOvertaken ? 'producer' : 'tail'
  }

  /** Finds the tail, below which nothing is in doubt. */
  async #locate(): Promise<number> {
    const { remote, copy, isCopyLive } = this.#context
    if (this.#tail !== undefined && this.#isRecent(this.#tail.at, FRESH_MS)) return this.#tail.seqNum
    return tailOrZero(copy !== undefined && isCopyLive?.() === true ? copy : remote, this.#signal)
  }

  /** Waits for other writers, longer the more often they were faster. */
  async #letOthersPass(): Promise<void> {
    const { clock, random } = this.#context
    await pauseUntil(clock, contentionMs(this.#losses, this.#attemptMs, random()), this.#signal)
    this.#signal.throwIfAborted()
  }

  /** Stores that entries are sent, unless the log says so already. */
  async #mark(entries: readonly OutboxEntry[], mode: Progress['mode'], matchSeqNum?: number): Promise<void> {
    const { doubtTo, position, mode: before } = this.#progress
    const last = entries.at(-1)!.number
    // Not exact, so that others who append do not cause a note each time.
    const isNear = matchSeqNum === undefined || matchSeqNum - position <= BATCH_RECORDS_MAX
    if (last <= doubtTo && mode === before && isNear) return
    const examined = this.#isInDoubt ? position : (matchSeqNum ?? position)
    await this.#note({ doubtTo: Math.max(last, doubtTo), mode, position: examined })
  }

  async #stored(ack: AppendAck, { entries, batch, after = 0 }: Attempt): Promise<void> {
    const { log, clock, onSent, afterRefusal } = this.#context
    const { start, end, duplicate } = ack
    if (batch !== undefined) this.#provenAt = clock.now()
    if (duplicate && end.seqNum <= after) {
      // It is an earlier attempt, of which everything was found. It may be trimmed, and cannot be examined then.
      await this.#note({ batch: batch!, doubtTo: -1, position: after })
      return this.#settle()
    }
    const stored = duplicate ? storedEntries(log.state, afterRefusal, ack) : entries
    // An attempt with other entries may have been stored as this batch.
    if (stored === undefined) return this.#learn(batch!, start.seqNum)
    this.#losses = 0
    this.#hasForgotten = false
    this.#entriesMax *= 2
    if (!duplicate) this.#tail = { seqNum: end.seqNum, at: clock.now() }
    const confirmed = confirmationsOf(stored, ack).filter(([number]) => this.#isWaiting(number))
    onSent?.()
    const known = batch === undefined ? {} : ({ batch, mode: 'producer' } as const)
    await this.#note({ ...known, doubtTo: -1, position: end.seqNum }, confirmed)
    this.#settle()
    this.#trimLog()
  }

  /** No attempt is in doubt any more. */
  #settle(): void {
    this.#isInDoubt = false
    this.#attemptedAt = 0
  }

  async #failed(error: HeadwaterError, attempt: Attempt): Promise<void> {
    const { entries, matchSeqNum, batch, isInDoubt } = attempt
    const outcome = sendOutcome(error)
    const isDefinite = !isInDoubt && !error.mayHaveEffects
    if (outcome === 'conflict' && matchSeqNum !== undefined) {
      const { seqNum = 0 } = error
      // The stream is another one, or the server contradicts itself.
      if (seqNum <= matchSeqNum) throw error
      // It stays in doubt: an earlier request of the same attempt may have been stored.
      this.#losses++
      return
    }
    if (outcome === 'stored') return this.#learn(error.lastSeq ?? batch!)
    if (outcome === 'forgotten') return this.#forget(error, isInDoubt)
    if (outcome === 'unsupported') return this.#rejected(error, attempt)
    if (outcome === 'refused') {
      if (!isDefinite) await this.#examine().catch((unread: unknown) => this.#parkUnread(unread))
      else this.#isInDoubt = false
      const [only] = entries
      if (entries.length === 1 && this.#isWaiting(only!.number))
        await this.#append([parkedRecord(only!.number, error)])
      this.#entriesMax = 1
      return
    }
    if (isDefinite) this.#isInDoubt = false
    throw error
  }

  /**
   * The server has stored batches of the producer up to this one, which the outbox did not know. The first of
   * them is at `start`, if that is given.
   */
  async #learn(batch: number, start?: number): Promise<void> {
    const tail = await this.#examine(start)
    await this.#note({ batch, doubtTo: -1, position: tail })
    // All attempts at batches up to this one are settled. One without a producer may be at the tail.
    if (this.#progress.mode === 'producer') this.#settle()
  }

  /**
   * The server does not know the producer: it was restored, the stream is another one, or a week has passed.
   */
  async #forget(error: HeadwaterError, isInDoubt: boolean): Promise<void> {
    const { log, copy, isCopyLive } = this.#context
    const isFirst = !this.#hasForgotten
    this.#hasForgotten = true
    // The mirror notices if the stream is another one. A new producer continues nothing.
    const isUncertain = copy !== undefined && isInDoubt && (isFirst || !isCopyLive?.())
    if (isUncertain || (!isFirst && this.#progress.batch < 0)) throw error
    const position = isInDoubt ? await this.#examine() : this.#progress.position
    const producer = log.newProducer()
    await this.#note({ producer, batch: -1, mode: 'tail', doubtTo: -1, position })
    // Nothing of the producer before can be stored any more.
    this.#settle()
    this.#provenAt = Number.NEGATIVE_INFINITY
  }

  /** The server takes no producer, at least in this request. */
  async #rejected(error: HeadwaterError, { matchSeqNum, batch, isInDoubt }: Attempt): Promise<void> {
    const { clock } = this.#context
    // Without a producer, there is none to reject.
    if (batch === undefined) throw error
    if (error.code === 'too_many_producers') {
      // A producer that the server knows is not one too many.
      if (isInDoubt && matchSeqNum === undefined) throw error
      this.#isInDoubt = isInDoubt
    }
    // It stays in doubt otherwise: a proxy may deliver a copy to a server that supports producers.
    if (matchSeqNum !== undefined || !this.#isInDoubt) {
      this.#plainSince = clock.now()
      return
    }
    // A proxy may still deliver the batch to a server that supports producers.
    if (++this.#rejections < REJECTIONS_MAX) throw error
    await this.#examine()
    await this.#parkInDoubt()
    await this.#note({ mode: 'tail', doubtTo: -1 })
    this.#settle()
    this.#plainSince = clock.now()
  }

  /**
   * Examines everything that the server has stored from `start` on, and confirms what is found. Parks what may
   * have been stored where nothing can be read. Resolves to the tail up to which it was examined.
   */
  async #examine(start = this.#progress.position): Promise<number> {
    const { log, remote, copy } = this.#context
    const tail = await tailOrZero(remote, this.#signal)
    if (tail < start) {
      // The mirror will notice that the stream is another one.
      if (copy !== undefined) throw mismatchedCopyError()
      await log.replaceStream(this.#signal)
      this.#token = undefined
      throw new HeadwaterError('unavailable', 'the stream was deleted and created again')
    }
    if (copy !== undefined && tail > start) await this.#untilCopied(copy, tail)
    let first = await this.#findIn(copy ?? remote, start, tail)
    // The copy may begin behind it.
    if (first > start && copy !== undefined) first = await this.#findIn(remote, start, first)
    const isSettled = tail > (this.#attemptedAt ?? tail)
    this.#attemptedAt ??= tail
    if (first > start) await this.#parkInDoubt()
    if (this.#progress.mode === 'producer') return tail
    if (tail > start) await this.#note({ position: tail, ...(isSettled && { doubtTo: -1 }) })
    if (isSettled) this.#settle()
    return tail
  }

  /**
   * Confirms what is found in a part of a stream. Resolves to the first position of the part that can be read.
   */
  async #findIn(stream: Stream, from: number, to: number): Promise<number> {
    const { log, copy } = this.#context
    if (from >= to) return from
    let first: number | undefined
    try {
      const query = { seqNum: from, count: to - from, clamp: true }
      const read = stream.read(query, { as: 'bytes', signal: this.#signal })
      for await (const { records } of read.batches()) {
        first ??= records[0]?.seqNum
        const inside = records.filter(({ seqNum }) => seqNum < to)
        await log.found(inside, copy === undefined ? NO_COPY : 0, this.#signal)
      }
    } catch (error) {
      if (!isStreamMissing(error)) throw error
    }
    return Math.min(first ?? to, to)
  }

  /** Waits until a copy has everything below a sequence number, and belongs to the stream. */
  async #untilCopied(copy: Stream, end: number): Promise<void> {
    const { clock, wakeUps, isCopyLive } = this.#context
    for (;;) {
      const tail = await tailOrZero(copy, this.#signal)
      if (tail >= end) break
      const query = { seqNum: tail, clamp: true, waitMs: COPY_WAIT_MS }
      try {
        await copy.readBatch(query, { as: 'bytes', signal: this.#signal })
      } catch (error) {
        if (!isStreamMissing(error)) throw error
        await pauseUntil(clock, COPY_WAIT_MS, this.#signal, wakeUps)
        this.#signal.throwIfAborted()
      }
    }
    if (isCopyLive?.() === false) throw mismatchedCopyError()
  }

  /** Parks the entries of which it cannot be known whether the server has stored them. */
  async #parkInDoubt(): Promise<void> {
    const entries = entriesInDoubt(this.#context.log.state).slice(0, BATCH_RECORDS_MAX)
    if (entries.length === 0) return
    await this.#append(entries.map(({ number }) => parkedRecord(number, outcomeUnknownError())))
  }

  /** Parks the entries in doubt if the server refuses to show what it has stored. */
  async #parkUnread(error: unknown): Promise<void> {
    if (!HeadwaterError.is(error) || sendOutcome(error) !== 'refused') throw error
    await this.#parkInDoubt()
  }

  async #note(changes: Partial<Progress>, confirmed: Confirmed = []): Promise<void> {
    const progress = progressRecord({ ...this.#progress, ...changes })
    if (confirmed.length === 0) return this.#append([progress])
    // Without a copy, they leave at once.
    const copiedTo = this.#context.copy === undefined ? NO_COPY : undefined
    await this.#append([storedRecord(confirmed, copiedTo), progress])
  }

  async #append(records: Parameters<OutboxLog['append']>[0]): Promise<void> {
    await this.#context.log.append(records, { fencingToken: this.#token, signal: this.#signal })
  }

  /** Removes records of the log that are not needed any more, if there are enough of them. */
  #trimLog(): void {
    const to = trimPoint(this.#context.log.state)
    if (this.#token === undefined || to - this.#trimmedTo < TRIMMED_RECORDS) return
    this.#trimmedTo = to
    // The next batch need not wait for it. If it fails, the next trim removes the same records.
    this.#append([trimRecord(to)]).catch(() => {})
  }

  /** Whether an entry is still in the outbox, and neither confirmed nor parked. */
  #isWaiting(number: number): boolean {
    const entry = this.#context.log.state.entries.get(number)
    return entry !== undefined && isWaiting(entry)
  }

  #isRecent(at: number, ms: number): boolean {
    return Math.abs(this.#context.clock.now() - at) < ms
  }
}

/** Returns the error of a sender that waits until the mirror has compared the copy, or replaced it. */
function mismatchedCopyError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the local copy does not match the stream of the server yet')
}
