import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import type { CallOptions, SiblingOptions } from '../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import type { StreamConfig, StreamReconfiguration } from '../../src/model/config.ts'
import type { RestoredStream } from '../../src/model/creation.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../../src/model/metrics.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import { codeOf } from '../../src/sync/failures.ts'
import type { ConnectionLimit } from './connection-limit.ts'

/** Makes the stream exist, if that is wanted. Resolves to whether it may exist now. */
export type CreateMissing = () => Promise<boolean>

/**
 * A stream of a server whose reads and appends share a number of connections with others. A read of a new
 * copy creates the stream if it is missing. What only the app calls is not limited.
 */
export class LimitedStream extends Stream {
  readonly #stream: Stream
  readonly #limit: ConnectionLimit
  readonly #createMissing: CreateMissing | undefined

  constructor(stream: Stream, limit: ConnectionLimit, createMissing?: CreateMissing) {
    super(stream.basinName, stream.name, stream.context)
    this.#stream = stream
    this.#limit = limit
    this.#createMissing = createMissing
  }

  override equals(other: unknown): boolean {
    return this.#stream.equals(other instanceof LimitedStream ? other.#stream : other)
  }

  override sibling(name: string, options?: SiblingOptions): Stream {
    return new LimitedStream(this.#stream.sibling(name, options), this.#limit)
  }

  override identity(options?: CallOptions): Promise<string> {
    return this.#stream.identity(options)
  }

  override restore(restored: RestoredStream, options?: CallOptions): Promise<void> {
    return this.#stream.restore(restored, options)
  }

  override async openCursor(query: ReadQuery, options: CursorOptions): Promise<RecordCursor | undefined> {
    const release = await this.#limit.acquire()
    try {
      const cursor = await this.#open(query, options)
      if (cursor !== undefined) return new LimitedCursor(cursor, release)
    } catch (error) {
      release()
      throw error
    }
    release()
    return undefined
  }

  override readUnary(
    query: ReadQuery,
    options: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    return this.#limit.run(() => this.#stream.readUnary(query, options))
  }

  override append(
    records: RecordInput | readonly RecordInput[],
    { signal, ...options }: AppendOptions = {},
  ): Promise<AppendAck> {
    // The request goes on when the signal aborts, and so keeps its connection.
    const acked = this.#limit.run(async () => {
      signal?.throwIfAborted()
      return this.#stream.append(records, options)
    })
    return unlessAborted(signal, acked)
  }

  override appendSession(options?: CallOptions): Promise<AppendSession> {
    return this.#stream.appendSession(options)
  }

  override checkTail(options?: CallOptions): Promise<StreamPosition> {
    return this.#limit.run(() => this.#stream.checkTail(options))
  }

  override storedConfig(options?: CallOptions): Promise<StreamConfig> {
    return this.#stream.storedConfig(options)
  }

  override reconfigureStored(change: StreamReconfiguration, options?: CallOptions): Promise<StreamConfig> {
    return this.#stream.reconfigureStored(change, options)
  }

  override delete(options?: CallOptions): Promise<void> {
    return this.#stream.delete(options)
  }

  override metrics(query: MetricsQuery<StreamMetricSet>, options?: CallOptions): Promise<readonly Metric[]> {
    return this.#stream.metrics(query, options)
  }

  async #open(query: ReadQuery, options: CursorOptions): Promise<RecordCursor | undefined> {
    try {
      return await this.#stream.openCursor(query, options)
    } catch (error) {
      // A copy that has records is one of a stream that was deleted: its read does not clamp.
      const isNew = codeOf(error) === 'stream_not_found' && query.clamp === true
      if (!isNew || (await this.#createMissing?.()) !== true) throw error
      return this.#stream.openCursor(query, options)
    }
  }
}

/** A cursor that holds a connection until it is closed. */
class LimitedCursor implements RecordCursor {
  readonly #cursor: RecordCursor
  readonly #release: () => void

  constructor(cursor: RecordCursor, release: () => void) {
    this.#cursor = cursor
    this.#release = release
  }

  async next() {
    try {
      const event = await this.#cursor.next()
      if (event === undefined) this.#release()
      return event
    } catch (error) {
      this.#release()
      throw error
    }
  }

  close(): void {
    this.#cursor.close()
    this.#release()
  }
}
