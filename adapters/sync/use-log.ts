import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { backOffMs, codeOf } from '../../src/sync/failures.ts'
import {
  isUseNews,
  NO_USE,
  type RecentUse,
  useRecord,
  useSummary,
  withUseRecords,
} from '../../src/sync/recent-use.ts'
import { pauseUntil } from './pause.ts'

/** The log is replaced by a summary when it has this many records. */
const RECORDS_MAX = 256

/** The log of recent use of a synced basin, which all tabs append to and follow. */
export class UseLog {
  readonly #stream: Stream
  readonly #signal: AbortSignal
  readonly #onChange: () => void
  #state = NO_USE
  #begins = 0

  private constructor(stream: Stream, signal: AbortSignal, onChange: () => void) {
    this.#stream = stream
    this.#signal = signal
    this.#onChange = onChange
  }

  /** Opens the log, and reads what it has. */
  static async open(stream: Stream, signal: AbortSignal, onChange: () => void): Promise<UseLog> {
    const log = new UseLog(stream, signal, onChange)
    await log.#begin()
    for await (const { records } of stream.read({}, { as: 'bytes', signal }).batches()) log.#read(records)
    return log
  }

  get state(): RecentUse {
    return this.#state
  }

  /** Calls back after each further change until the signal aborts. */
  async follow(random: () => number): Promise<void> {
    for (let failures = 0; !this.#signal.aborted; failures++) {
      try {
        const query = { seqNum: this.#state.next, clamp: true }
        const following = this.#stream.follow(query, { as: 'bytes', signal: this.#signal })
        for await (const { records } of following.batches()) {
          this.#read(records)
          this.#onChange()
          failures = 0
        }
      } catch {
        // The storage failed, or this device has closed it.
      }
      await pauseUntil(
        this.#stream.context.clock,
        backOffMs(failures + 1, random()),
        this.#signal,
        () => () => {},
      )
    }
  }

  /** Notes that a stream is used, unless that was noted a short time ago. */
  async used(name: string): Promise<void> {
    if (!isUseNews(this.#state, name, this.#stream.context.clock.now())) return
    await this.#append({ used: [name] })
  }

  /** Notes that streams were added to the local basin or removed from it. */
  async listed(): Promise<void> {
    await this.#append({ listed: true })
  }

  /** Replaces a long log by a summary. */
  async shorten(): Promise<void> {
    const { next } = this.#state
    if (next - this.#begins < RECORDS_MAX) return
    try {
      // Conditional, so that no use is noted before the summary that does not have it.
      await this.#append(useSummary(this.#state), next)
    } catch (error) {
      if (codeOf(error) !== 'seq_num_mismatch') throw error
      return
    }
    this.#begins = next
    await this.#stream.trim(next)
  }

  async #begin(): Promise<void> {
    try {
      const { seqNum } = await this.#stream.checkTail({ signal: this.#signal })
      if (seqNum > 0) return
    } catch (error) {
      if (!isStreamMissing(error)) throw error
    }
    try {
      await this.#append({}, 0)
    } catch (error) {
      // Another tab was first.
      if (codeOf(error) !== 'seq_num_mismatch') throw error
    }
  }

  async #append(note: Parameters<typeof useRecord>[0], matchSeqNum?: number): Promise<void> {
    await this.#stream.append(useRecord(note), { matchSeqNum, signal: this.#signal })
  }

  #read(records: Parameters<typeof withUseRecords>[1]): void {
    this.#state = withUseRecords(this.#state, records)
    if (this.#begins === 0) this.#begins = records[0]!.seqNum
  }
}
