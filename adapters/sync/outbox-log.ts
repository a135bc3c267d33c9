import type { Stream } from '../../src/api/stream.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { onAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { backOffMs } from '../../src/sync/back-off.ts'
import { asHeadwaterError, codeOf, isStreamMissing } from '../../src/sync/errors.ts'
import {
  emptyOutbox,
  type LogRecord,
  type OutboxNews,
  type OutboxState,
  progressRecord,
  trimPoint,
  withLogRecords,
} from '../../src/sync/outbox-log.ts'
import { pauseUntil } from './pause.ts'

/** Keeps what waits for as long as that takes, whatever the defaults of the basin are. */
const LOG_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'arrival', uncapped: false },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** The log of an outbox as one tab reads it. Other tabs may append to it at any time. */
export class OutboxLog {
  readonly #stream: Stream
  readonly #random: () => number
  readonly #signal: AbortSignal
  readonly #listeners = new Set<() => void>()
  readonly #news: OutboxNews
  #state = emptyOutbox()
  #trimmedTo = 0
  /** The failure that ended the log, or that of the storage while the log cannot be read. */
  #failure: HeadwaterError | undefined

  constructor(stream: Stream, random: () => number, signal: AbortSignal, news: OutboxNews) {
    this.#news = news
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

  /** Calls back after each change. The returned function ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Resolves when a condition holds; rejects with the failure of the log, and with the reason of a signal.
   */
  until(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.#until(condition, () => this.#failure !== undefined, signal)
  }

  /** Settles as `until` does, but waits while the storage fails in a way that may pass. */
  eventually(condition: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.#until(condition, () => this.#failure?.retryable === false, signal)
  }

  async #until(condition: () => boolean, hasFailed: () => boolean, signal?: AbortSignal): Promise<void> {
    let unsubscribe = () => {}
    const reached = new Promise<void>((resolve, reject) => {
      const check = () => {
        if (condition()) resolve()
        else if (hasFailed()) reject(this.#failure)
        else if (this.#signal.aborted) reject(this.#signal.reason)
      }
      unsubscribe = this.subscribe(check)
      check()
    })
    await unlessAborted(signal, reached).finally(unsubscribe)
  }

  /**
   * Appends records to a log that was read, and resolves once the state includes them. Calls `stored` before
   * that, when their numbers are known.
   */
  async append(
    records: readonly LogRecord[],
    signal?: AbortSignal,
    stored?: (ack: AppendAck) => void,
  ): Promise<AppendAck> {
    const ack = await this.#stream.append([...records], { signal })
    stored?.(ack)
    await this.until(() => this.#state.next >= ack.end.seqNum, signal)
    return ack
  }

  /** Resolves when the state includes everything that the log has. */
  async caughtUp(signal: AbortSignal): Promise<void> {
    const { seqNum } = await this.#stream.checkTail({ signal })
    await this.until(() => this.#state.next >= seqNum, signal)
  }

  /** Removes records that are not needed any more, if there are enough of them. */
  async trim(): Promise<void> {
    const to = trimPoint(this.#state)
    if (to - this.#trimmedTo < TRIMMED_RECORDS) return
    this.#trimmedTo = to
    await this.#stream.trim(to)
  }

  async #follow(): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await this.#begin()
        const query = { seqNum: this.#state.next, clamp: true }
        const following = this.#stream.follow(query, { as: 'bytes', commands: true, signal: this.#signal })
        for await (const { records } of following.batches()) {
          failures = 0
          this.#failure = undefined
          this.#read(records)
        }
      } catch (error) {
        this.#failure = asHeadwaterError(error)
      }
      if (this.#signal.aborted) return
      this.#changed()
      if (this.#failure?.retryable === false) return
      const { clock } = this.#stream.context
      await pauseUntil(clock, backOffMs(failures, this.#random()), this.#signal, () => () => {})
    }
  }

  /** Begins the log if this is the first tab that uses it. */
  async #begin(): Promise<void> {
    const progress = { device: newDevice(this.#random), position: 0, inDoubt: false, confirmed: [] }
    try {
      const { seqNum } = await this.#stream.checkTail({ signal: this.#signal })
      if (seqNum > 0) return
    } catch (error) {
      if (!isStreamMissing(error)) throw error
    }
    const missing = this.#stream.sibling(this.#stream.name, { autoCreate: true, config: LOG_CONFIG })
    try {
      await missing.append([progressRecord(progress)], { matchSeqNum: 0, signal: this.#signal })
    } catch (error) {
      // Another tab was first.
      if (codeOf(error) !== 'seq_num_mismatch') throw error
    }
  }

  #read(records: readonly SequencedRecord[]): void {
    this.#state = withLogRecords(this.#state, records, this.#news)
    this.#changed()
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

/** 129 random bits. */
const DEVICE_LENGTH = 25

function newDevice(random: () => number): string {
  return Array.from({ length: DEVICE_LENGTH }, () => Math.floor(random() * 36).toString(36)).join('')
}
