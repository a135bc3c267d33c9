import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import type { SiblingOptions } from '../../src/api/stream-options.ts'
import { appendBatch, ownBytes, type RecordInput } from '../../src/model/append-input.ts'
import type { StreamConfig, StreamReconfiguration } from '../../src/model/config.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../../src/model/metrics.ts'
import { streamNameProblem } from '../../src/model/names.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { RedactedKey } from '../../src/model/redacted-key.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import { AppendRequests } from './append-requests.ts'
import type { ClientCore } from './core.ts'
import { jsonCall } from './json-call.ts'
import { loadAccount, loadControl, loaded } from './on-demand.ts'
import { readBatch } from './read-batch.ts'
import { RemoteCursor } from './remote-cursor.ts'
import type { StreamTarget } from './stream-target.ts'
import { tailOf } from './tail.ts'

/** A stream of a server. */
export class RemoteStream extends Stream {
  readonly #core: ClientCore
  readonly #target: StreamTarget
  readonly #appends: AppendRequests

  constructor(core: ClientCore, target: StreamTarget) {
    super(target.basin.name, target.name, core.streamContext)
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
      ownBytes(batch)
      const reservation = this.#core.streamContext.reserve(batch.meteredBytes)
      const acked = this.#core
        .inOrder(this.#target.id, async () => {
          signal?.throwIfAborted()
          return this.#appends.append(batch)
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
    const { openAppendSession } = await unlessAborted(
      signal,
      loaded('append sessions', import('./session-appender.ts')),
    )
    return openAppendSession(this.#core, this.#target, this.#appends, signal)
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
    const call = this.#jsonCall('GET', this.#begin(options))
    const { streamConfig } = await loadControl()
    return streamConfig(this.#core.sender, call)
  }

  override async reconfigureStored(
    change: StreamReconfiguration,
    options?: CallOptions,
  ): Promise<StreamConfig> {
    const signal = this.#begin(options)
    const { reconfigureStream } = await loadControl()
    return reconfigureStream(this.#core.sender, this.#target.path, this.basinName, change, signal)
  }

  override async delete(options?: CallOptions): Promise<void> {
    const call = this.#jsonCall('DELETE', this.#begin(options))
    // Not repeated after an unknown outcome: another stream may have the name by then.
    await this.#core.sender.send({ ...call, isRepeatable: false })
  }

  override async metrics(
    query: MetricsQuery<StreamMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    const signal = this.#begin(options)
    const { metrics } = await loadAccount()
    return metrics(this.#core.sender, [this.basinName, this.name], query, { signal })
  }

  #begin(options?: CallOptions): AbortSignal | undefined {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    assertValid(streamNameProblem(this.name), 'stream')
    this.#target.basin.assertName()
    return signal
  }

  /** Reading creates the stream only if it is asked to. */
  #reading<Result>(create: boolean | undefined, read: () => Promise<Result>): Promise<Result> {
    if (create !== true) return read()
    return new AppendRequests(this.#core, this.#target.creating()).creatingStream(read)
  }

  #jsonCall(method: 'GET' | 'DELETE', signal: AbortSignal | undefined) {
    return jsonCall(method, this.#target.path, { basin: this.basinName, signal })
  }
}
