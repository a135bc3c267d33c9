import { type StreamDocument, streamKey } from '../documents.ts'
import { measureEach } from './measure-each.ts'
import { readLastMeasurement } from './stored-usage.ts'
import { logScope } from './usage-documents.ts'
import type { UsageEngine } from './usage-flush.ts'

const STREAMS_OF_STEP = 256

/**
 * Adds up what the streams of a basin hold, some at a time. One that cannot be measured is reported, and counts with what it held when it was
 * measured last.
 */
export class BasinSize {
  /** Metered bytes of the streams that were looked at. */
  bytes = 0
  /** When the oldest of them was created, milliseconds; undefined: there was none. */
  since: number | undefined
  readonly #engine: UsageEngine
  readonly #prefix: string
  #after = ''
  #isReported = false

  constructor(engine: UsageEngine, basin: string) {
    this.#engine = engine
    this.#prefix = streamKey(basin, '')
  }

  /** Looks at some more; resolves to whether there are more. When it rejects, the same ones come again. */
  async step(): Promise<boolean> {
    const { session } = this.#engine
    const range = { prefix: this.#prefix, after: this.#after, limit: STREAMS_OF_STEP }
    const streams = await session.list('streams', range)
    const documents = streams.map(({ value }) => value as unknown as StreamDocument)
    this.bytes += await this.#measure(documents.map(({ logId }) => logId))
    for (const { createdAt } of documents) this.since = Math.min(this.since ?? createdAt, createdAt)
    this.#after = streams.at(-1)?.key ?? this.#after
    return streams.length === STREAMS_OF_STEP
  }

  async #measure(logIds: readonly string[]): Promise<number> {
    const { session, settings } = this.#engine
    const { sizes, failures } = await measureEach(session, logIds)
    let bytes = 0
    for (const size of sizes.values()) bytes += size
    const now = Math.floor(settings.clock.now() / 1000)
    for (const logId of failures.keys()) {
      bytes += (await readLastMeasurement(session, logScope(logId), now)) ?? 0
    }
    const [failure] = failures.values()
    if (failures.size > 0 && !this.#isReported) {
      this.#isReported = true
      settings.onBackgroundError(failure)
    }
    return bytes
  }
}
