import type { AppendOptions } from '../../src/api/append-session.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { HeadwaterError, invalid, isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { fenceRecord, type SequencedRecord } from '../../src/model/record.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { Condition } from '../../src/runtime/condition.ts'
import { secureRandom } from '../../src/runtime/random.ts'
import { asHeadwaterError, codeOf } from '../../src/sync/failures.ts'
import { entriesFound, ownNonces } from '../../src/sync/outbox.ts'
import {
  type Confirmed,
  initialProgress,
  type LogRecord,
  noteRecord,
  type OutboxListener,
  OutboxState,
} from '../../src/sync/outbox-log.ts'
import { BackOff } from './activity.ts'

/** Keeps what waits for as long as that takes, whatever the defaults of the basin are. */
const LOG_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'arrival', uncapped: false },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

/** 82 random bits: enough for no two devices to have the same id. */
const DEVICE_LENGTH = 16
/** 129 random bits. */
const PRODUCER_LENGTH = 25
/** 62 random bits, each guess of which is an append that everybody sees. */
const NONCE_LENGTH = 12

interface LogListener extends OutboxListener {
  /** Settles appends of entries below a number, which may have left the outbox unnoticed. */
  readonly missed: (before: number) => void
}

/**
 * Notes which entries are among records that a mirror copies next. The copy has everything below `copiedTo`.
 */
export type NoteReceived = (
  records: readonly SequencedRecord[],
  copiedTo: number,
  isCaughtUp: boolean,
) => Promise<void>

/** The log of an outbox as one tab reads it. Other tabs may append to it at any time. */
export class OutboxLog {
  readonly clock: Clock
  readonly #stream: Stream
  readonly #random: () => number
  readonly #signal: AbortSignal
  readonly #changes = new Condition()
  readonly #outbox: LogListener
  #identity = ''
  #state = new OutboxState()
  /** The tail of the log when it was opened. */
  #initialTail = Number.POSITIVE_INFINITY
  /** The failure that ended the log, or that of the storage while the log cannot be read. */
  #failure: HeadwaterError | undefined

  constructor(stream: Stream, random: (() => number) | undefined, signal: AbortSignal, outbox: LogListener) {
    this.clock = stream.context.clock
    this.#outbox = outbox
    // An append to a log that was deleted fails, instead of beginning one without an id.
    this.#stream = stream.sibling(stream.name, { autoCreate: false, config: LOG_CONFIG })
    this.#random = random ?? secureRandom
    this.#signal = signal
    void this.#follow()
    onAbort(signal, () => this.#changes.notify())
  }

  get state(): OutboxState {
    return this.#state
  }

  /** The identity of the stream, which names the election of the tabs; empty until the outbox is loaded. */
  get identity(): string {
    return this.#identity
  }

  /** The id of the outbox; undefined until everything was read that the log had when it was opened. */
  get device(): string | undefined {
    return this.#state.next < this.#initialTail ? undefined : this.#state.progress?.device
  }

  /** Resolves when everything was read that the log had when it was opened. */
  loaded(signal?: AbortSignal): Promise<void> {
    return this.eventually(() => this.device !== undefined, signal)
  }

  /** The reason why the log is not read any more: it was closed, or has failed permanently. */
  get end(): HeadwaterError | undefined {
    const { aborted, reason } = this.#signal
    if (this.#failure?.retryable === false) return this.#failure
    return aborted ? (reason as HeadwaterError) : undefined
  }

  /** Calls back after each change. The returned function ends that. */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener)
  }

  /** Settles as `until` does, but waits while the storage fails in a way that may pass. */
  eventually(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.until(condition, signal, () => this.end)
  }

  /** Resolves when a condition holds; rejects with the failure of the log, or with the reason of a signal. */
  until(
    condition: () => boolean,
    signal?: AbortSignal,
    failureOf = () => this.#failure ?? this.end,
  ): Promise<void> {
    const isReached = () => {
      if (condition()) return true
      const failure = failureOf()
      if (failure !== undefined) throw failure
      return false
    }
    return this.#changes.until(isReached, signal)
  }

  /**
   * Makes the caller the only sender of the log. Resolves to its fencing token once the state includes
   * everything that earlier senders have noted.
   */
  async claim(signal: AbortSignal): Promise<string> {
    const token = newToken()
    await this.append([fenceRecord(token)], { signal })
    return token
  }

  /** Begins again with another stream. Ends what every sender does at the moment. */
  async replaceStream(signal: AbortSignal): Promise<void> {
    await this.loaded(signal)
    await this.append([fenceRecord(newToken()), noteRecord('replaced', {})], { signal })
  }

  /** Appends records, and resolves once the state includes them. Calls `stored` when their place is known. */
  async append(
    records: readonly LogRecord[],
    options: AppendOptions = {},
    stored?: (number: number) => void,
  ): Promise<void> {
    const ack = await this.#stream.append([...records], options)
    stored?.(ack.start.seqNum)
    this.#includeOwn(records, ack)
    await this.until(() => this.#state.next >= ack.end.seqNum, options.signal)
  }

  /** Returns the nonce of an entry. */
  newNonce(): string {
    return randomText(NONCE_LENGTH, this.#random)
  }

  /**
   * Notes which records of the remote stream are entries, unless the log says so already. The copy, if there
   * is one, has everything below `copiedTo`, and gets these records next. Rejects with `stream_deleted` if
   * the stream was replaced after `since`, a place in the log.
   */
  async found(
    records: readonly SequencedRecord[],
    copiedTo: number,
    signal?: AbortSignal | undefined,
    since = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    const numbers = [...ownNonces(records, this.#state.progress!.device).keys()]
    const isKnown = numbers.every((number) => number < this.#state.next)
    if (numbers.length === 0 || (isKnown && entriesFound(this.#state, records).length === 0)) return
    for (;;) {
      // Other tabs may have appended them, or have noted it.
      await this.catchUp(signal)
      if (this.#state.replacedAt > since) throw new HeadwaterError('stream_deleted', 'the copy begins again')
      const confirmed = entriesFound(this.#state, records)
      if (confirmed.length === 0) return
      const matchSeqNum = this.#state.next
      try {
        return await this.append([noteRecord('stored', { confirmed, copiedTo })], { matchSeqNum, signal })
      } catch (error) {
        if (codeOf(error) !== 'seq_num_mismatch') throw error
      }
    }
  }

  /**
   * Prepares the copying of a mirror, before it connects. Resolves to a function that notes which entries the
   * mirror has received: before it copies them, so that a view of the copy never shows them as pending too.
   */
  async beginCopying(signal: AbortSignal): Promise<NoteReceived> {
    if (this.end !== undefined) return async () => {}
    await this.loaded(signal)
    const since = this.#state.replacedAt
    let acknowledged = [...this.#state.entries.values()].filter(({ confirmation }) => confirmation)
    return async (records, copiedTo, isCaughtUp) => {
      await this.found(records, copiedTo, signal, since)
      if (!isCaughtUp || acknowledged.length === 0) return
      // What the server had before the connection began, and was not found: the copy begins behind it, or it
      // is gone with an earlier stream.
      const passed = acknowledged.flatMap(({ number, records, confirmation }): Confirmed => {
        const { start, end } = confirmation!
        if (this.#state.entries.get(number)?.isFound !== false) return []
        const first = { ...start, seqNum: copiedTo - records.length }
        return [[number, { start: first, end: { ...end, seqNum: copiedTo } }]]
      })
      acknowledged = []
      if (passed.length > 0)
        await this.append([noteRecord('stored', { confirmed: passed, copiedTo })], { signal })
    }
  }

  /** Resolves once the state includes everything that the log has now. */
  async catchUp(signal?: AbortSignal | undefined): Promise<void> {
    const { seqNum } = await this.#stream.checkTail({ signal })
    await this.until(() => this.#state.next >= seqNum, signal)
  }

  /** Stores the decision of the app about a parked entry. Throws `invalid` if there is none of the number. */
  async decide(decision: 'retry' | 'discard', number: number, signal?: AbortSignal): Promise<void> {
    if (this.end !== undefined) throw this.end
    // The parked batches are known only once the log has been read.
    await this.until(() => this.device !== undefined, signal)
    if (this.#state.entries.get(number)?.error === undefined) throw notParked(number)
    await this.append([noteRecord(decision, { number })], { signal })
    // Another tab has decided to send it before.
    if (decision === 'discard' && this.#state.entries.has(number)) throw notParked(number)
  }

  /** Reads the log until the signal aborts or the log has failed permanently. */
  async #follow(): Promise<void> {
    const backOff = new BackOff(this.clock, this.#random)
    for (;;) {
      try {
        await this.#begin()
        const query = { seqNum: this.#state.next, clamp: true, waitMs: Number.POSITIVE_INFINITY }
        const read = this.#stream.read(query, { as: 'bytes', signal: this.#signal })
        for await (const batch of read.batches()) {
          backOff.reset()
          this.#failure = undefined
          // What this tab has appended is known, and not decoded.
          if (batch.lastSeqNum >= this.#state.next) this.#include(batch.records)
        }
      } catch (error) {
        this.#failure = asHeadwaterError(error)
      }
      if (this.#signal.aborted) return
      this.#changes.notify()
      if (this.end !== undefined) return
      await backOff.afterFailure(this.#failure, this.#signal)
    }
  }

  /** Creates the log if it is missing. */
  async #begin(): Promise<void> {
    const tail = await tailOrZero(this.#stream, this.#signal)
    if (tail === 0) {
      const missing = this.#stream.sibling(this.#stream.name, { autoCreate: true, config: LOG_CONFIG })
      const [device, producer] = [DEVICE_LENGTH, PRODUCER_LENGTH].map((length) =>
        randomText(length, this.#random),
      )
      const progress = noteRecord('progress', initialProgress(device!, producer!))
      await missing.append([progress], { matchSeqNum: 0, signal: this.#signal }).catch((error) => {
        // Another tab was first.
        if (codeOf(error) !== 'seq_num_mismatch') throw error
      })
    }
    this.#identity = await this.#stream.identity({ signal: this.#signal })
    // A log that is opened again after a failure stays loaded.
    this.#initialTail = Math.min(this.#initialTail, tail)
  }

  /** Includes what this tab has appended, which need not be read back, unless others were first. */
  #includeOwn(records: readonly LogRecord[], { start: { seqNum, timestamp } }: AppendAck): void {
    // The log has the time of the append, which is the same for all.
    if (seqNum === this.#state.next)
      this.#include(records.map((record, index) => ({ ...record, seqNum: seqNum + index, timestamp })))
  }

  #include(all: readonly SequencedRecord[]): void {
    const { next, progress } = this.#state
    const records = all.filter(({ seqNum }) => seqNum >= next)
    const [first] = records
    if (first === undefined) return
    const hasMissed = first.seqNum > next
    if (hasMissed) {
      // Another tab has trimmed the log, of which nothing is needed that this tab has missed.
      this.#state = new OutboxState()
      this.#state.progress = progress
    }
    this.#state.include(records, this.#outbox)
    if (hasMissed) this.#outbox.missed(first.seqNum)
    this.#changes.notify()
  }
}

/** Two tabs must differ, whatever random numbers a test gives them. */
function newToken(): string {
  return randomText(NONCE_LENGTH, secureRandom)
}

function randomText(length: number, random: () => number): string {
  let text = ''
  // A random number of 32 bits is enough for six digits.
  while (text.length < length) {
    text += Math.floor(random() * 36 ** 6)
      .toString(36)
      .padStart(6, '0')
  }
  return text.slice(0, length)
}

function notParked(number: number): HeadwaterError {
  return invalid(`no parked batch has the number ${number}`, 'number')
}

/** Resolves to the tail of a stream, or to 0 if the stream does not exist. */
export async function tailOrZero(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}
