import type { StorageSession } from '../../storage/contract.ts'
import { type StreamDocument, streamKey } from '../documents.ts'

const STREAMS_OF_STEP = 256

/** Adds up what the streams of a basin hold, some at a time. */
export class BasinSize {
  /** Metered bytes of the streams that were looked at. */
  bytes = 0
  /** When the oldest of them was created, milliseconds; undefined: there was none. */
  since: number | undefined
  readonly #session: StorageSession
  readonly #prefix: string
  #after = ''

  constructor(session: StorageSession, basin: string) {
    this.#session = session
    this.#prefix = streamKey(basin, '')
  }

  /** Looks at some more; resolves to whether there are more. When it rejects, the same ones come again. */
  async step(): Promise<boolean> {
    const range = { prefix: this.#prefix, after: this.#after, limit: STREAMS_OF_STEP }
    const streams = await this.#session.list('streams', range)
    const documents = streams.map(({ value }) => value as unknown as StreamDocument)
    const sizes = await this.#session.measure(documents.map(({ logId }) => logId))
    for (const size of sizes) this.bytes += size
    for (const { createdAt } of documents) this.since = Math.min(this.since ?? createdAt, createdAt)
    this.#after = streams.at(-1)?.key ?? this.#after
    return streams.length === STREAMS_OF_STEP
  }
}
