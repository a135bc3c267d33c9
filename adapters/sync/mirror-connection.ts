import type { AppendSession } from '../../src/api/append-session.ts'
import type { RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, mirrorOutcome } from '../../src/sync/failures.ts'
import {
  type Arrival,
  type CopyEnd,
  comparedFrom,
  continuationOf,
  isContinuedBy,
  type MirrorStart,
  type MirrorState,
  replacedMirror,
  type StoppedMirror,
  startOf,
  startQuery,
  trimmedMirror,
} from '../../src/sync/mirror.ts'
import type { LocalCopy } from './local-copy.ts'
import type { OutboxLog } from './outbox-log.ts'

/** Servers send a heartbeat in three quarters of this time, in milliseconds. */
const SILENCE_MS_MAX = 20_000
/** A connection of this age counts as a success without records too, in milliseconds. */
const LASTING_MS = 10_000

/** What a connection works with. */
export interface ConnectionContext {
  readonly remote: Stream
  readonly copy: LocalCopy
  /** The start of a copy that has no records yet. */
  readonly from: MirrorStart
  /** Whether to create the remote stream if it is missing and nothing was copied. */
  readonly create: boolean | undefined
  readonly clock: Clock
  /** The log of the outbox that sends to the remote stream. */
  readonly log: OutboxLog | undefined
  readonly onState: (state: MirrorState) => void
}

/** How a connection ended, unless its signal aborted. */
export type ConnectionEnd =
  /** Another connection may succeed. `hasLasted` states whether this one counts as a success. */
  | { readonly kind: 'failed'; readonly error: HeadwaterError; readonly hasLasted: boolean }
  /** It may have been lost unnoticed, as after the computer was asleep. */
  | { readonly kind: 'silent' }
  /** Another mirror appended to the copy first. */
  | { readonly kind: 'conflict' }
  /** The local copy is another one now. */
  | { readonly kind: 'other-copy' }
  | StoppedMirror

/** Ends a connection from within. */
class Ended extends Error {
  readonly end: ConnectionEnd

  constructor(end: ConnectionEnd) {
    super(end.kind)
    this.end = end
  }
}

/** One connection of a mirror: it compares the remote stream with the local copy, and continues the copy. */
export class Connection {
  readonly #context: ConnectionContext
  readonly #signal: AbortSignal
  readonly #startedAt: number
  /** Ends what is awaited. */
  readonly #ending = new SharedSignal()
  #cursor: RecordCursor | undefined
  #session: AppendSession | undefined
  /** The time since which the connection has waited for the remote stream. */
  #waitingSince: number | undefined
  #hasBegun = false
  /** The sequence number of the next record to append. */
  #next = 0
  /** The sequence number after the last record that is durable. */
  #position = 0
  /** The tail of the remote stream, as far as it is known. */
  #tail = 0
  /**
   * The first tail that the read has reached. Later records may arrive faster than the device stores them, so
   * having these is what makes the copy live.
   */
  #liveAt: number | undefined
  #isLive = false
  /** Whether the stream is closed and everything was read. */
  #isComplete = false
  #hasCopied = false

  constructor(context: ConnectionContext, signal: AbortSignal) {
    this.#context = context
    this.#signal = signal
    this.#startedAt = context.clock.now()
  }

  /** Runs until the connection ends. */
  async run(identity: string): Promise<ConnectionEnd> {
    const ignoreSignal = onAbort(this.#signal, () => this.#ending.abort(this.#signal.reason))
    onAbort(this.#ending, () => this.#cursor?.close())
    try {
      return await this.#copy(identity)
    } catch (error) {
      return error instanceof Ended ? error.end : this.#endOf(asHeadwaterError(error))
    } finally {
      ignoreSignal()
      this.#cursor?.close()
      await this.#session?.close().catch(() => {})
    }
  }

  /** Ends the connection if it has been silent for too long, or if the app asks and the stream is closed. */
  check(isAsked: boolean): void {
    const since = this.#waitingSince
    if (since === undefined) return
    const isSilent = Math.abs(this.#context.clock.now() - since) >= SILENCE_MS_MAX
    if (isSilent || (isAsked && this.#isComplete)) this.#ending.abort(new Ended({ kind: 'silent' }))
  }

  /** Ends the connection, because the device has lost its network. */
  lose(): void {
    const error = new HeadwaterError('unavailable', 'this device has lost the network')
    this.#ending.abort(new Ended({ kind: 'failed', error, hasLasted: true }))
  }

  async #copy(identity: string): Promise<never> {
    const { copy, log } = this.#context
    const open = await locally(copy.open(identity, this.#signal))
    if (open === undefined) throw new Ended({ kind: 'other-copy' })
    const { session, end } = open
    this.#session = session
    this.#hasBegun = end.tail.seqNum > 0
    this.#next = this.#position = end.tail.seqNum
    const noteReceived = log && (await locally(log.beginCopying(this.#signal)))
    const first = await this.#firstEvent(end)
    await this.#compare(end, first)
    if (first.tail === undefined) this.#findTail()
    for (let event = first; ; event = await this.#event()) {
      const { records, tail } = event
      const known = records.filter(({ seqNum }) => seqNum < end.tail.seqNum)
      const isShorter = tail !== undefined && tail.seqNum < end.tail.seqNum
      if (isShorter || !isContinuedBy(end, known)) throw new Ended(replacedMirror())
      // Before they are copied: see `OutboxLog.beginCopying`.
      if (noteReceived !== undefined) await locally(noteReceived(records, this.#position, tail !== undefined))
      if (records.length > known.length) await this.#append(records.slice(known.length))
      if (tail?.seqNum === this.#next) this.#liveAt ??= this.#next
      this.#tail = Math.max(this.#tail, tail?.seqNum ?? this.#next)
      this.#report()
      // Nothing follows, so there is nothing to connect for.
      if (tail?.closed) await this.#stay()
    }
  }

  async #firstEvent(end: CopyEnd): Promise<Arrival> {
    try {
      await this.#connect(end)
      return await this.#event()
    } catch (error) {
      const wasEmpty = !this.#hasBegun && end.streamId !== undefined
      if (!wasEmpty || !isStreamMissing(error)) throw error
      // An append may create another stream. What may have been sent to this one is parked before that.
      await locally(this.#context.copy.begin({ records: [], tail: undefined }, this.#signal))
      throw new Ended({ kind: 'other-copy' })
    }
  }

  /** Ends the connection unless the remote stream continues the copy. */
  async #compare(end: CopyEnd, first: Arrival): Promise<void> {
    if (!this.#hasBegun) {
      if (startOf(first) === 0 && end.streamId === first.streamId) return
      await locally(this.#context.copy.begin(first, this.#signal))
      throw new Ended({ kind: 'other-copy' })
    }
    const continuation = continuationOf(end, first)
    if (continuation.kind === 'replaced') throw new Ended(replacedMirror())
    if (continuation.kind === 'trimmed') throw new Ended(trimmedMirror(continuation.gap))
  }

  /** Waits until the mirror ends or connects again, because the stream may be another one by then. */
  async #stay(): Promise<never> {
    this.#isComplete = true
    this.#waitingSince = this.#context.clock.now()
    this.#cursor?.close()
    return new Promise((_, reject) => onAbort(this.#ending, () => reject(this.#ending.reason)))
  }

  async #connect(end: CopyEnd): Promise<void> {
    const { remote, from, create, clock } = this.#context
    const isNew = !this.#hasBegun
    const query = startQuery(isNew ? from : { seqNum: comparedFrom(end) }, isNew)
    this.#waitingSince = clock.now()
    const options = { heartbeats: true, retry: false, allowsEmpty: 'always' } as const
    // A copy with records is one of a stream that was deleted.
    const opening = remote.openCursor(query, { ...options, create: isNew && create })
    this.#cursor = await unlessAborted(this.#ending, opening, (late) => late?.close())
  }

  async #event(): Promise<Arrival> {
    this.#waitingSince = this.#context.clock.now()
    const arrival = await arrivalOf(this.#cursor)
    this.#waitingSince = undefined
    this.#ending.throwIfAborted()
    if (arrival === undefined) throw new HeadwaterError('unavailable', 'the read session ended')
    return arrival
  }

  async #append(records: readonly SequencedRecord[]): Promise<void> {
    // A read that falls behind goes on after what was trimmed meanwhile.
    const afterGap = records.find((record, index) => record.seqNum !== this.#next + index)
    if (afterGap !== undefined) throw new Ended(trimmedMirror({ from: this.#next, to: afterGap.seqNum }))
    const inputs = records.map(({ timestamp, headers, body }) => ({ timestamp, headers, body }))
    const submitted = this.#session!.submit(inputs, { matchSeqNum: this.#next })
    this.#next += records.length
    const ticket = await locally(submitted)
    ticket.ack().then(
      ({ end }) => {
        this.#position = end.seqNum
        this.#hasCopied = true
        this.#report()
      },
      (error: unknown) => this.#ending.abort(new Ended(endOfLocal(error))),
    )
  }

  #report(): void {
    if (this.#signal.aborted || this.#isLive) return
    const [position, tail] = [this.#position, this.#tail]
    this.#isLive = this.#liveAt !== undefined && position >= this.#liveAt
    this.#context.onState(this.#isLive ? { kind: 'live' } : { kind: 'catching-up', position, tail })
  }

  /** Asks for the tail: stored records come without one. If that fails, the end of what arrived is shown. */
  #findTail(): void {
    this.#context.remote.checkTail({ signal: this.#signal }).then(
      ({ seqNum }) => {
        this.#tail = Math.max(this.#tail, seqNum)
      },
      () => {},
    )
  }

  #endOf(error: HeadwaterError): ConnectionEnd {
    const outcome = mirrorOutcome(error, this.#hasBegun)
    // A token that ended during the read: the next connection may get another one.
    const isTokenEnd = error.code === 'authn' && this.#cursor !== undefined
    if (outcome !== 'retry' && !isTokenEnd) return { kind: 'stopped', reason: outcome, error }
    const ageMs = Math.abs(this.#context.clock.now() - this.#startedAt)
    return { kind: 'failed', error, hasLasted: this.#hasCopied || ageMs >= LASTING_MS }
  }
}

/** Resolves to what a read returns next; to undefined at its end. */
async function arrivalOf(cursor: RecordCursor | undefined): Promise<Arrival | undefined> {
  const event = await cursor?.next()
  const streamId = cursor?.streamId
  if (event?.kind !== 'batch') return event && { records: [], tail: event.tail, streamId }
  const { records, tail } = event.batch
  return { records, tail, streamId }
}

/** Resolves to what a read of the remote stream returns at once. */
export async function firstArrival(
  remote: Stream,
  query: ReturnType<typeof startQuery>,
  signal: AbortSignal,
): Promise<Arrival> {
  const opening = remote.openCursor(query, { heartbeats: true, allowsEmpty: 'always' })
  const cursor = await unlessAborted(signal, opening, (late) => late?.close())
  try {
    const arrival = await unlessAborted(signal, arrivalOf(cursor))
    return arrival ?? { records: [], tail: undefined, streamId: cursor?.streamId }
  } finally {
    cursor?.close()
  }
}

/** Settles as `work` does. Failures end the connection as those of the local copy. */
async function locally<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw new Ended(endOfLocal(error))
  }
}

/** Returns what a failure of the local copy means. */
export function endOfLocal(thrown: unknown): ConnectionEnd {
  const failure = asHeadwaterError(thrown)
  const error = failure.code === 'append_discarded' ? asHeadwaterError(failure.cause) : failure
  if (error.code === 'seq_num_mismatch') return { kind: 'conflict' }
  const isDeleted = error.code === 'stream_deletion_pending' || error.code === 'stream_deleted'
  if (isDeleted || isStreamMissing(error)) return { kind: 'other-copy' }
  const outcome = mirrorOutcome(error, false)
  if (outcome === 'retry') return { kind: 'failed', error, hasLasted: false }
  return { kind: 'stopped', reason: outcome, error }
}
