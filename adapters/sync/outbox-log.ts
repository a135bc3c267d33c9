import type { Stream } from '../../src/api/stream.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { type HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { secureRandom } from '../../src/runtime/ids.ts'
import { backOffMs } from '../../src/sync/back-off.ts'
import { asHeadwaterError, codeOf } from '../../src/sync/errors.ts'
import {
  emptyOutbox,
  type LogRecord,
  type OutboxListener,
  type OutboxState,
  type Progress,
  progressRecord,
  withLogRecords,
} from '../../src/sync/outbox-log.ts'
import { pauseUntil } from './pause.ts'

/** Keeps what waits for as long as that takes, whatever the defaults of the basin are. */
const LOG_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'arrival', uncapped: false },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

/** The size up to which an entry leaves room for notes in the same append, in metered bytes. */
const WITH_NOTES_BYTES_MAX = BATCH_METERED_BYTES_MAX / 2

/** Notes that are stored together with an entry. */
export interface EntryNotes {
  readonly before: readonly LogRecord[]
  readonly after: readonly LogRecord[]
  /** Receives the outcome of the append. */
  readonly appended: (acked: Promise<AppendAck>) => void
}

interface LogListener extends OutboxListener {
  /** Settles appends of entries below a number, which may have left the outbox unnoticed. */
  readonly missed: (before: number) => void
}

/** The log of an outbox as one tab reads it. Other tabs may append to it at any time. */
export class OutboxLog {
  readonly #stream: Stream
  readonly #random: (() => number) | undefined
  readonly #signal: AbortSignal
  readonly #listeners = new Set<() => void>()
  readonly #outbox: LogListener
  /** Returns the notes that are stored together with an entry of so many records. Set by the sender. */
  notesWith: ((records: number) => EntryNotes) | undefined
  #state = emptyOutbox()
  /** The tail of the log when it was opened. */
  #initialTail = Number.POSITIVE_INFINITY
  /** The entries that the server has acknowledged last, and that the state may still include. */
  #acknowledged: Progress['confirmed'] = []
  /** The failure that ended the log, or that of the storage while the log cannot be read. */
  #failure: HeadwaterError | undefined

  constructor(stream: Stream, random: (() => number) | undefined, signal: AbortSignal, outbox: LogListener) {
    this.#outbox = outbox
    // An append to a log that was deleted fails, instead of beginning one without an id.
    this.#stream = stream.sibling(stream.name, { autoCreate: false, config: LOG_CONFIG })
    this.#random = random
    this.#signal = signal
    void this.#follow()
    onAbort(signal, () => this.#changed())
  }

  get state(): OutboxState {
    return this.#state
  }

  /** The id of the outbox; undefined until everything was read that the log had when it was opened. */
  get device(): string | undefined {
    return this.#state.next < this.#initialTail ? undefined : this.#state.progress?.device
  }

  /** The reason why the log is not read any more: it was closed, or has failed permanently. */
  get end(): HeadwaterError | undefined {
    const { aborted, reason } = this.#signal
    if (this.#failure?.retryable === false) return this.#failure
    return aborted ? (reason as HeadwaterError) : undefined
  }

  /** The size of the entries that the server has not acknowledged. */
  get load(): { readonly records: number; readonly meteredBytes: number } {
    let { records, meteredBytes } = this.#state
    for (const [number] of this.#acknowledged) {
      const entry = this.#state.entries.get(number)
      records -= entry?.records.length ?? 0
      meteredBytes -= entry?.meteredBytes ?? 0
    }
    return { records, meteredBytes }
  }

  /** Calls back after each change. The returned function ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Resolves when a condition holds; rejects with the failure of the log, and with the reason of a signal.
   */
  until(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.#until(condition, () => this.#failure ?? this.end, signal)
  }

  /** Settles as `until` does, but waits while the storage fails in a way that may pass. */
  eventually(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.#until(condition, () => this.end, signal)
  }

  async #until(
    condition: () => boolean,
    failure: () => HeadwaterError | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    if (condition() && !signal?.aborted) return
    let unsubscribe = () => {}
    const reached = new Promise<void>((resolve, reject) => {
      const check = () => {
        if (condition()) resolve()
        else if (failure() !== undefined) reject(failure())
      }
      unsubscribe = this.subscribe(check)
      check()
    })
    await unlessAborted(signal, reached).finally(unsubscribe)
  }

  /** Reports entries as confirmed before the log says so, which only saves that they are sent again. */
  acknowledge(confirmed: Progress['confirmed']): void {
    this.#acknowledged = confirmed
    for (const [number, confirmation] of confirmed) this.#outbox.confirmed(number, confirmation)
  }

  /** Appends records, and resolves once the state includes them. */
  async append(records: readonly LogRecord[], signal?: AbortSignal): Promise<AppendAck> {
    const ack = await this.#stream.append([...records], { signal })
    this.#includeOwn(records, ack)
    if (!this.#hasIncluded(ack)) await this.includes(ack, signal)
    return ack
  }

  /**
   * Appends the records of an entry, and resolves once the state includes it. Calls `stored` before that,
   * when its number is known.
   */
  async appendEntry(
    records: readonly LogRecord[],
    meteredBytes: number,
    signal: AbortSignal | undefined,
    stored: (number: number) => void,
  ): Promise<void> {
    const hasRoom = meteredBytes < WITH_NOTES_BYTES_MAX && records.length <= BATCH_RECORDS_MAX - 2
    const notes = hasRoom ? this.notesWith?.(records.length) : undefined
    const { before, after } = notes ?? { before: [], after: [] }
    // Without the signal, which is not that of the notes.
    const all = [...before, ...records, ...after]
    const acked = this.#stream.append(all)
    notes?.appended(acked)
    const ack = await unlessAborted(signal, acked)
    stored(ack.start.seqNum + before.length)
    this.#includeOwn(all, ack)
    if (!this.#hasIncluded(ack)) await this.includes(ack, signal)
  }

  /** Resolves when the state includes what was appended. */
  includes(ack: Pick<AppendAck, 'end'>, signal?: AbortSignal): Promise<void> {
    return this.until(() => this.#hasIncluded(ack), signal)
  }

  #hasIncluded({ end }: Pick<AppendAck, 'end'>): boolean {
    return this.#state.next >= end.seqNum
  }

  /** Resolves when the state includes everything that the log has. */
  async caughtUp(signal: AbortSignal): Promise<void> {
    await this.includes({ end: await this.#stream.checkTail({ signal }) }, signal)
  }

  /**
   * Includes records that this tab has appended, unless there are others before them. It need not wait until
   * they are read back.
   */
  #includeOwn(records: readonly LogRecord[], { start }: AppendAck): void {
    if (start.seqNum !== this.#state.next) return
    const { seqNum, timestamp } = start
    // The log has the time of the append, which is the same for all.
    this.#read(
      records.map(({ headers, body }, index) => ({ seqNum: seqNum + index, timestamp, headers, body })),
    )
  }

  async #follow(): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await this.#begin()
        await this.#readOn(() => {
          failures = 0
          this.#failure = undefined
        })
      } catch (error) {
        this.#failure = asHeadwaterError(error)
      }
      if (this.#signal.aborted) return
      this.#changed()
      if (this.end !== undefined) return
      const { clock } = this.#stream.context
      await pauseUntil(
        clock,
        backOffMs(failures, (this.#random ?? Math.random)()),
        this.#signal,
        () => () => {},
      )
    }
  }

  /** Reads what is appended, until the signal aborts. Calls back for each batch. */
  async #readOn(onBatch: () => void): Promise<void> {
    const query = { seqNum: this.#state.next, clamp: true, waitMs: Number.POSITIVE_INFINITY }
    // Not `follow`, which copies each batch for callers that may write to it.
    const cursor = await this.#stream.openCursor(query, { allowsEmpty: 'always' })
    const ignoreSignal = onAbort(this.#signal, () => cursor?.close())
    try {
      for (let event = await cursor?.next(); event !== undefined; event = await cursor?.next()) {
        if (event.kind !== 'batch') continue
        onBatch()
        const { next } = this.#state
        const { lastSeqNum, count } = event.batch
        // Most were appended by this tab, and are included already.
        if (lastSeqNum < next) continue
        const isNew = lastSeqNum - count + 1 >= next
        const { records } = event.batch
        this.#read(isNew ? records : records.filter(({ seqNum }) => seqNum >= next))
      }
    } finally {
      ignoreSignal()
      cursor?.close()
    }
  }

  /** Begins the log if this is the first tab that uses it. */
  async #begin(): Promise<void> {
    const progress = {
      device: randomText(DEVICE_LENGTH, this.#random),
      producer: randomText(PRODUCER_LENGTH, this.#random),
      attemptAt: -1,
      position: 0,
      inDoubt: false,
      confirmed: [],
    }
    let tail = 0
    try {
      tail = (await this.#stream.checkTail({ signal: this.#signal })).seqNum
    } catch (error) {
      if (!isStreamMissing(error)) throw error
    }
    // A log that is opened again after a failure stays loaded.
    this.#initialTail = Math.min(this.#initialTail, tail)
    if (tail > 0) return
    const missing = this.#stream.sibling(this.#stream.name, { autoCreate: true, config: LOG_CONFIG })
    try {
      await missing.append([progressRecord(progress)], { matchSeqNum: 0, signal: this.#signal })
    } catch (error) {
      // Another tab was first.
      if (codeOf(error) !== 'seq_num_mismatch') throw error
    }
  }

  #read(records: readonly SequencedRecord[]): void {
    const { next, progress } = this.#state
    const { seqNum } = records[0]!
    // Another tab has trimmed the log, of which nothing is needed that this tab has missed.
    if (seqNum > next) this.#state = { ...emptyOutbox(), progress }
    this.#state = withLogRecords(this.#state, records, this.#outbox)
    if (seqNum > next) this.#outbox.missed(seqNum)
    this.#changed()
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

/** 82 random bits: enough for no two devices to have the same id. */
const DEVICE_LENGTH = 16
/** 129 random bits. */
const PRODUCER_LENGTH = 25
/** 62 random bits, each guess of which is an append that everybody sees. */
const NONCE_LENGTH = 12

/** Returns a text that identifies an append. `random` makes tests repeatable. */
export function newNonce(random: (() => number) | undefined): string {
  return randomText(NONCE_LENGTH, random)
}

function randomText(length: number, random: () => number = secureRandom): string {
  return Array.from({ length }, () => Math.floor(random() * 36).toString(36)).join('')
}
