import type { UsageContext } from '../engine/service/usage.ts'
import { type StreamDocument, streamKey } from '../storage/documents.ts'
import { logScope } from './documents.ts'
import { measureEach, readLastMeasurement } from './stored-usage.ts'

const STREAMS_PER_STEP = 256

/**
 * Adds up the stored bytes of a basin's streams, one page of streams at a time. A stream that cannot be
 * measured counts with its last stored measurement, and the first such failure is reported.
 */
export class BasinSize {
  /** Metered bytes of the streams measured so far. */
  bytes = 0
  /**
   * The time at which the oldest of these streams was created, in milliseconds; undefined if there are none.
   */
  since: number | undefined
  readonly #context: UsageContext
  readonly #prefix: string
  #after = ''
  #hasReported = false

  constructor(context: UsageContext, basin: string) {
    this.#context = context
    this.#prefix = streamKey(basin, '')
  }

  /**
   * Measures the next page. Resolves to whether more follow. After a rejection, the next call repeats the
   * page.
   */
  async step(): Promise<boolean> {
    const { session } = this.#context
    const range = { prefix: this.#prefix, after: this.#after, limit: STREAMS_PER_STEP }
    const streams = await session.list('streams', range)
    const documents = streams.map(({ value }) => value as unknown as StreamDocument)
    this.bytes += await this.#measure(documents.map(({ logId }) => logId))
    for (const { createdAt } of documents) this.since = Math.min(this.since ?? createdAt, createdAt)
    this.#after = streams.at(-1)?.key ?? this.#after
    return streams.length === STREAMS_PER_STEP
  }

  async #measure(logIds: readonly string[]): Promise<number> {
    const { session, onBackgroundError } = this.#context
    const { sizes, failures } = await measureEach(session, logIds)
    let bytes = 0
    for (const size of sizes.values()) bytes += size
    const now = Math.floor(this.#context.clock.now() / 1000)
    for (const logId of failures.keys()) {
      bytes += (await readLastMeasurement(session, logScope(logId), now)) ?? 0
    }
    const [failure] = failures.values()
    if (failures.size > 0 && !this.#hasReported) {
      this.#hasReported = true
      onBackgroundError(failure)
    }
    return bytes
  }
}
