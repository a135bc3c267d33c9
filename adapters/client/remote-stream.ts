import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import { type CallOptions, type SiblingOptions, signalOf } from '../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { assertStreamConfig, type StreamConfig, type StreamReconfiguration } from '../../src/model/config.ts'
import { RedactedKey } from '../../src/model/encryption-key.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import { streamChangeText, streamConfigOf } from '../../src/wire/json-config.ts'
import { AppendRequests } from './append-requests.ts'
import { jsonCall } from './call.ts'
import { beginStream, metricsFor } from './control-calls.ts'
import type { ClientCore } from './core.ts'
import { withStreamRetention } from './default-retention.ts'
import { readBatch, tailOf } from './read-requests.ts'
import { RemoteCursor } from './remote-cursor.ts'
import { openAppendSession } from './session-appender.ts'
import type { RemoteTarget } from './stream-target.ts'

/** A stream of a server. */
export class RemoteStream extends Stream {
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #appends: AppendRequests

  constructor(core: ClientCore, target: RemoteTarget) {
    super(target.basin, target.name, core.streamContext)
    this.#core = core
    this.#target = target
    this.#appends = new AppendRequests(core, target)
  }

  override equals(other: unknown): boolean {
    if (!(other instanceof RemoteStream) || other.#core !== this.#core) return false
    return other.#target.id === this.#target.id && RedactedKey.equal(other.#target.key, this.#target.key)
  }

  override sibling(name: string, options: SiblingOptions = {}): RemoteStream {
    return new RemoteStream(this.#core, this.#target.sibling(name, options))
  }

  override async identity(): Promise<string> {
    return `${this.#core.settings.url}/${this.#target.id}`
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
      const signal = options?.signal
      signal?.throwIfAborted()
      this.#begin()
      const body = this.#appends.encode(batch)
      const reservation = this.#core.streamContext.reserve(batch.meteredBytes)
      const acked = this.#core
        .inOrder(this.#target.id, async () => {
          const creating = this.#core.settled(this.basinName)
          if (creating !== undefined) await creating
          signal?.throwIfAborted()
          return this.#appends.append(batch, body)
        })
        .finally(() => reservation.release())
      // The request goes on when the signal aborts: the next append must not overtake it.
      return unlessAborted(signal, acked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  override async appendSession(options?: CallOptions): Promise<AppendSession> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#begin()
    const { closing } = this.#core
    const earlier = [this.#core.settled(this.basinName), this.#core.settled(this.#target.id)]
    await unlessAborted(signal, Promise.all(earlier))
    return openAppendSession(this.#core, this.#target, this.#appends, signal, closing)
  }

  /** @internal The session of a producer does not end when the client begins to close, which waits for it. */
  override producerSession(signal?: AbortSignal): Promise<AppendSession> {
    return openAppendSession(this.#core, this.#target, this.#appends, signal, undefined)
  }

  override async readUnary(
    query: ReadQuery,
    { signal, create }: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    this.#begin()
    return this.#reading(create, () => readBatch(this.#core, this.#target, query, signal))
  }

  override async openCursor(
    query: ReadQuery,
    { create, ...options }: CursorOptions,
  ): Promise<RecordCursor | undefined> {
    this.#begin()
    return this.#reading(create, () => RemoteCursor.open(this.#core, this.#target, query, options))
  }

  override async checkTail(options?: CallOptions): Promise<StreamTail> {
    return tailOf(this.#core, this.#target, this.#begin(options))
  }

  override async storedConfig(options?: CallOptions): Promise<StreamConfig> {
    const { sender } = this.#core
    const signal = beginStream(sender, this.basinName, this.name, options)
    return sender.json(jsonCall('GET', this.#target.path, { basin: this.basinName, signal }), streamConfigOf)
  }

  override async reconfigureStored(
    change: StreamReconfiguration,
    options?: CallOptions,
  ): Promise<StreamConfig> {
    const { sender } = this.#core
    const basin = this.basinName
    const signal = beginStream(sender, basin, this.name, options)
    assertStreamConfig(change)
    const isCleared = change.retentionPolicy === null
    const complete = isCleared ? await withStreamRetention(sender, basin, change, signal) : change
    const call = jsonCall('PATCH', this.#target.path, { basin, text: streamChangeText(complete), signal })
    return sender.json(call, streamConfigOf)
  }

  /** Is not repeated after an unknown outcome: another stream may have the name by then. */
  override async delete(options?: CallOptions): Promise<void> {
    const { sender } = this.#core
    const signal = beginStream(sender, this.basinName, this.name, options)
    const call = { basin: this.basinName, isRepeatable: false, signal }
    await sender.send(jsonCall('DELETE', this.#target.path, call))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#core.sender, [this.basinName, this.name], query, options)
  }

  #begin(options?: CallOptions): AbortSignal | undefined {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    assertValid(streamNameProblem(this.name), 'stream')
    assertValid(basinNameProblem(this.basinName), 'basin')
    return signal
  }

  /** Reading creates the stream only if it is asked to. */
  #reading<Result>(create: boolean | undefined, read: () => Promise<Result>): Promise<Result> {
    if (create !== true) return read()
    return new AppendRequests(this.#core, this.#target.creating()).creatingStream(read)
  }
}
