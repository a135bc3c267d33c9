import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import type { CallOptions, SiblingOptions } from '../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { assertStreamConfig, type StreamConfig, type StreamReconfiguration } from '../../src/model/config.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import { streamChangeText, streamConfigOf } from '../../src/wire/json-config.ts'
import { appendByRequest } from './append.ts'
import { openAppendSession } from './append-session.ts'
import { jsonCall } from './call.ts'
import type { ClientCore } from './core.ts'
import { createIfMissing, withStreamRetention } from './creation.ts'
import { RemoteCursor, readBatch, tailOf } from './read.ts'
import type { RemoteTarget } from './stream-target.ts'
import { begin, metricsFor } from './unary-calls.ts'

/** A stream of a server. */
export class RemoteStream extends Stream {
  readonly #core: ClientCore
  readonly #target: RemoteTarget

  constructor(core: ClientCore, target: RemoteTarget) {
    super(...target.names, core.streamContext)
    this.#core = core
    this.#target = target
  }

  override equals(other: unknown): boolean {
    if (!(other instanceof RemoteStream) || other.#core !== this.#core) return false
    const isSame = other.basinName === this.basinName && other.name === this.name
    return isSame && EncryptionKey.equal(other.#target.key, this.#target.key)
  }

  override sibling(name: string, options: SiblingOptions = {}): RemoteStream {
    return new RemoteStream(this.#core, this.#target.sibling(name, options))
  }

  override async identity(): Promise<string> {
    return `${this.#core.settings.url}/${this.#target.names.join('/')}`
  }

  override async restore(): Promise<void> {
    throw new HeadwaterError('unsupported', 'servers cannot restore streams')
  }

  override append(
    records: RecordInput | readonly RecordInput[],
    options?: AppendOptions,
  ): Promise<AppendAck> {
    try {
      const batch = appendBatch(records, options)
      const signal = this.#begin({ signal: options?.signal })
      const { sender, streamContext } = this.#core
      const reservation = streamContext.reserve(batch.meteredBytes)
      const acked = this.#core
        .inOrder(this.#target.names, async () => {
          signal?.throwIfAborted()
          return appendByRequest(sender, this.#target, batch)
        })
        .finally(() => reservation.release())
      // The request goes on when the signal aborts: the next append must not overtake it.
      return unlessAborted(signal, acked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  override async appendSession(options?: CallOptions): Promise<AppendSession> {
    const signal = this.#begin(options)
    // Appends and creations that were called before come first.
    await unlessAborted(
      signal,
      this.#core.inOrder(this.#target.names, async () => {}),
    )
    return openAppendSession(this.#core, this.#target, signal, this.#core.closing)
  }

  /** @internal The session of a producer does not end when the client begins to close, which waits for it. */
  override producerSession(signal?: AbortSignal): Promise<AppendSession> {
    return openAppendSession(this.#core, this.#target, signal, undefined)
  }

  override async readUnary(
    query: ReadQuery,
    { signal, create }: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    this.#begin({ signal })
    return this.#reading(create, () => readBatch(this.#core.sender, this.#target, query, signal))
  }

  override async openCursor(
    query: ReadQuery,
    { create, ...options }: CursorOptions,
  ): Promise<RecordCursor | undefined> {
    this.#begin()
    return this.#reading(create, () => RemoteCursor.open(this.#core.sender, this.#target, query, options))
  }

  override async checkTail(options?: CallOptions): Promise<StreamTail> {
    return tailOf(this.#core.sender, this.#target, this.#begin(options))
  }

  override async storedConfig(options?: CallOptions): Promise<StreamConfig> {
    const { sender } = this.#core
    const signal = this.#begin(options)
    return sender.json(jsonCall('GET', this.#target.path, { basin: this.basinName, signal }), streamConfigOf)
  }

  override async reconfigureStored(
    change: StreamReconfiguration,
    options?: CallOptions,
  ): Promise<StreamConfig> {
    const { sender } = this.#core
    const basin = this.basinName
    const signal = this.#begin(options)
    assertStreamConfig(change)
    const isCleared = change.retentionPolicy === null
    const complete = isCleared ? await withStreamRetention(sender, basin, change, signal) : change
    const call = jsonCall('PATCH', this.#target.path, { basin, text: streamChangeText(complete), signal })
    return sender.json(call, streamConfigOf)
  }

  /** Is not repeated after an unknown outcome: another stream may have the name by then. */
  override async delete(options?: CallOptions): Promise<void> {
    const { sender } = this.#core
    const signal = this.#begin(options)
    const call = { basin: this.basinName, isRepeatable: false, signal }
    await sender.send(jsonCall('DELETE', this.#target.path, call))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#core.sender, [this.basinName, this.name], query, options)
  }

  #begin(options?: CallOptions): AbortSignal | undefined {
    return begin(this.#core.sender, options, this.#target.names)
  }

  /** Reading creates the stream only if it is asked to. */
  #reading<Result>(create = false, read: () => Promise<Result>): Promise<Result> {
    return createIfMissing(this.#core.sender, this.#target, create, read)
  }
}
