import type { AppendSession } from '../../src/api/append-session.ts'
import type { RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { type CopyEnd, comparedFrom, continuationOf, isContinuedBy } from '../../src/sync/copy-end.ts'
import { asHeadwaterError, mirrorOutcome } from '../../src/sync/failures.ts'
import type { MirrorState, StoppedMirror } from '../../src/sync/mirror-state.ts'
import type { LocalCopy } from './local-copy.ts'
import { type MirrorStart, startQuery } from './mirror-start.ts'
import type { MirrorOutbox } from './outbox.ts'

/** Servers send a heartbeat in three quarters of this time, in milliseconds. */
const SILENCE_MS_MAX = 20_000
/** A connection of this age counts as a success without records too, in milliseconds. */
const LASTING_MS = 10_000

/** The streams between which a connection copies, and its environment. */
export interface ConnectionOptions {
  readonly remote: Stream
  readonly copy: LocalCopy
  /** The identity of the copy. */
  readonly identity: string
  /** The start of a copy that has no records yet. */
  readonly from: MirrorStart
  /** Whether to create the remote stream if it is missing and nothing was copied. */
  readonly create?: (() => boolean) | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly outbox: MirrorOutbox | undefined
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

/** A failure of the local stream. */
class LocalFailure extends Error {
  readonly error: unknown

  constructor(error: unknown) {
    super('the local stream failed')
    this.error = error
  }
}

/** Ends a connection from within. */
class Ended extends Error {
  readonly end: ConnectionEnd

  constructor(end: ConnectionEnd) {
    super(end.kind)
    this.end = end
  }
}

/** One connection of a mirror: it compares the remote stream with the local copy, and continues the copy. */
export class MirrorConnection {
  readonly #options: ConnectionOptions
  readonly #clock: Clock
  #cursor: RecordCursor | undefined
  #session: AppendSession | undefined
  #startedAt = 0
  /** The time since which the connection has waited for the remote stream. */
  #waitingSince: number | undefined
  /** Ends what is awaited. */
  readonly #ending = new SharedSignal()
  /** The sequence number of the next record to append. */
  #next = 0
  /** The sequence number after the last record that is durable. */
  #position = 0
  /** The tail of the remote stream, as the read sent it last. */
  #tail: number | undefined
  /** The tail as far as it is known while the read sends none. */
  #tailMin = 0
  #isLive = false
  /** Whether the stream is closed and everything was read. */
  #isComplete = false
  #hasCopied = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#clock = options.clock
  }

  /** Runs until the connection ends. */
  async run(): Promise<ConnectionEnd> {
    const { signal } = this.#options
    const ignoreSignal = onAbort(signal, () => this.#ending.abort(signal.reason))
    onAbort(this.#ending, () => this.#cursor?.close())
    try {
      return await this.#copy()
    } catch (error) {
      return this.#endOf(error)
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
    const isSilent = Math.abs(this.#clock.now() - since) >= SILENCE_MS_MAX
    if (isSilent || (isAsked && this.#isComplete)) this.#ending.abort(new Ended({ kind: 'silent' }))
  }

  /** Ends the connection, because the device has lost its network. */
  lose(): void {
    const error = new HeadwaterError('unavailable', 'this device has lost the network')
    this.#ending.abort(new Ended({ kind: 'failed', error, hasLasted: true }))
  }

  async #copy(): Promise<never> {
    const { copy, identity, signal, outbox } = this.#options
    const open = await locally(copy.open(identity, signal))
    if (open === undefined) throw new Ended({ kind: 'other-copy' })
    const { session, end } = open
    this.#session = session
    const note = outbox && (await locally(outbox.beginCopying(signal)))
    this.#next = end.tail.seqNum
    this.#position = this.#next
    this.#startedAt = this.#clock.now()
    await this.#connect(end)
    const first = await this.#event()
    if (this.#next === 0) await this.#begin(first)
    else {
      const continuation = continuationOf(end, first)
      if (continuation.kind === 'replaced') throw replaced()
      if (continuation.kind === 'trimmed') throw trimmed(continuation.gap)
    }
    if (first.tail === undefined) this.#findTail()
    for (let event = first; ; event = await this.#event()) {
      const known = event.records.filter(({ seqNum }) => seqNum < end.tail.seqNum)
      const isShorter = event.tail !== undefined && event.tail.seqNum < end.tail.seqNum
      if (isShorter || !isContinuedBy(end, known)) throw replaced()
      if (note !== undefined) await locally(note(event.records, this.#position, event.tail !== undefined))
      const records = known.length === 0 ? event.records : event.records.slice(known.length)
      if (records.length > 0) await this.#append(records)
      this.#tail = event.tail?.seqNum
      this.#report()
      // Nothing follows, so there is nothing to connect for.
      if (event.tail?.closed) await this.#stay()
    }
  }

  /** Waits until the mirror ends or connects again, because the stream may be another one by then. */
  async #stay(): Promise<never> {
    this.#isComplete = true
    this.#waitingSince = this.#clock.now()
    this.#cursor?.close()
    return new Promise((_, reject) => onAbort(this.#ending, () => reject(this.#ending.reason)))
  }

  async #connect(end: CopyEnd): Promise<void> {
    const { remote, from, create } = this.#options
    const waitMs = Number.POSITIVE_INFINITY
    const query = this.#next === 0 ? startQuery(from) : { seqNum: comparedFrom(end), waitMs }
    this.#waitingSince = this.#clock.now()
    const options = { heartbeats: true, retry: false, allowsEmpty: 'always' } as const
    // A copy with records is one of a stream that was deleted.
    const opening = remote.openCursor(query, { ...options, create: this.#next === 0 && create?.() })
    this.#cursor = await unlessAborted(this.#ending, opening, (late) => late?.close())
  }

  async #event(): Promise<{
    readonly records: readonly SequencedRecord[]
    readonly tail: StreamTail | undefined
  }> {
    this.#waitingSince = this.#clock.now()
    const event = await this.#cursor?.next()
    this.#waitingSince = undefined
    this.#ending.throwIfAborted()
    if (event === undefined) throw new HeadwaterError('unavailable', 'the read session ended')
    return event.kind === 'batch' ? event.batch : { records: [], tail: event.tail }
  }

  /** Begins a copy: with a new one, unless the remote stream begins with sequence number 0 too. */
  async #begin({
    records,
    tail,
  }: {
    readonly records: readonly SequencedRecord[]
    readonly tail: StreamTail | undefined
  }): Promise<void> {
    const start = records[0]?.seqNum ?? tail?.seqNum ?? 0
    if (start === 0) return
    await locally(this.#options.copy.replace(start))
    throw new Ended({ kind: 'other-copy' })
  }

  async #append(records: readonly SequencedRecord[]): Promise<void> {
    const { seqNum } = records[0]!
    const last = records.at(-1)!.seqNum
    // A read that falls behind goes on after what was trimmed meanwhile.
    if (seqNum !== this.#next || last !== seqNum + records.length - 1) {
      const gapEnd = records.find((record, index) => record.seqNum !== this.#next + index)!.seqNum
      throw trimmed({ from: this.#next, to: gapEnd })
    }
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
      (error: unknown) => {
        this.#ending.abort(new LocalFailure(error))
      },
    )
  }

  #report(): void {
    if (this.#options.signal.aborted || this.#isLive) return
    const position = this.#position
    this.#tailMin = Math.max(this.#tailMin, this.#tail ?? this.#next)
    this.#isLive = this.#tail === position
    this.#options.onState(
      this.#isLive ? { kind: 'live' } : { kind: 'catching-up', position, tail: this.#tailMin },
    )
  }

  /** Asks for the tail: stored records come without one. */
  #findTail(): void {
    const { remote, signal } = this.#options
    remote.checkTail({ signal }).then(
      ({ seqNum }) => {
        this.#tailMin = Math.max(this.#tailMin, seqNum)
      },
      // The end of what has arrived is shown instead.
      () => {},
    )
  }

  #endOf(thrown: unknown): ConnectionEnd {
    if (thrown instanceof Ended) return thrown.end
    const isLocal = thrown instanceof LocalFailure
    const error = asHeadwaterError(isLocal ? thrown.error : thrown)
    if (isLocal) {
      const cause = error.code === 'append_discarded' ? asHeadwaterError(error.cause) : error
      if (cause.code === 'seq_num_mismatch') return { kind: 'conflict' }
      if (isCopyGone(cause)) return { kind: 'other-copy' }
    }
    const outcome = mirrorOutcome(error, this.#next > 0)
    // A token that ended during the read: the next connection may get another one.
    const isTokenEnd = error.code === 'authn' && this.#cursor !== undefined
    if (outcome !== 'retry' && !isTokenEnd) return { kind: 'stopped', reason: outcome, error }
    const hasLasted = this.#hasCopied || Math.abs(this.#clock.now() - this.#startedAt) >= LASTING_MS
    return { kind: 'failed', error, hasLasted }
  }
}

function replaced(): Ended {
  const error = new HeadwaterError(
    'stream_deleted',
    'the remote stream was deleted and created again, or it has lost records that were copied',
  )
  return new Ended({ kind: 'stopped', reason: 'replaced', error })
}

function trimmed(gap: StoppedMirror['gap'] & {}): Ended {
  const { from, to } = gap
  const what = from === to ? 'record before it' : `records from ${from} to ${to - 1}`
  const error = new HeadwaterError(
    'range_not_satisfiable',
    `the remote stream was trimmed beyond the local copy, which ends at ${from}: the ${what} cannot be read`,
  )
  return new Ended({ kind: 'stopped', reason: 'trimmed', error, gap })
}

/** Settles as `work` does, with failures as {@link LocalFailure}. */
async function locally<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw new LocalFailure(error)
  }
}

/** Whether an append failed because the copy was deleted. */
function isCopyGone(error: HeadwaterError): boolean {
  return error.code === 'stream_deletion_pending' || error.code === 'stream_deleted' || isStreamMissing(error)
}
