import { type AppendOptions, AppendSession } from '../../api/append-session.ts'
import {
  type CallOptions,
  type SiblingOptions,
  type StreamOptions,
  signalOf,
} from '../../api/call-options.ts'
import type { CursorOptions } from '../../api/record-cursor.ts'
import { Stream } from '../../api/stream.ts'
import type { Operation } from '../../model/access.ts'
import { type AppendBatch, borrowedBatch, ownBytes, type RecordInput } from '../../model/append-input.ts'
import type { StreamConfig, StreamReconfiguration } from '../../model/config.ts'
import { EncryptionKey, type EncryptionKeyInput } from '../../model/encryption-key.ts'
import type { AppendAck, RestoredStream, StreamMetadata } from '../../model/info.ts'
import type { Metric, MetricsQuery, StreamMetricSet } from '../../model/metrics.ts'
import type { StreamRef } from '../../model/names.ts'
import type { StreamTail } from '../../model/position.ts'
import type { ReadQuery } from '../../model/read-query.ts'
import { ownCopy } from '../../model/validation.ts'
import { type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import type { Caller } from '../access/caller.ts'
import type { ReadCursor } from '../log/follow.ts'
import type { AppendReservation } from '../service/admission.ts'
import type { StreamDescription } from '../service/read-service.ts'
import type { ExpectedIdentity, StreamTarget } from '../streams/table.ts'
import type { EngineServices } from './engine-services.ts'

interface HandleOptions extends Pick<StreamOptions, 'config'> {
  readonly identity?: ExpectedIdentity | undefined
  readonly encryptionKey?: EncryptionKeyInput | EncryptionKey | undefined
}

/** A stream of an engine. */
export class EngineStream extends Stream {
  readonly #services: EngineServices
  readonly #caller: Caller
  readonly #target: StreamTarget

  /** @internal Creates a handle. If `always`, an append creates the stream, whatever its basin says. */
  constructor(
    services: EngineServices,
    caller: Caller,
    ref: StreamRef,
    always: boolean,
    { config, encryptionKey: key, identity }: HandleOptions,
  ) {
    super(ref.basin, ref.stream, services.streamContext)
    this.#services = services
    this.#caller = caller
    this.#target = {
      ref,
      // A stream that is expected to be an existing one is not created.
      creation: {
        always,
        never: identity?.id !== undefined,
        config,
        defaultRetention: caller.defaultRetention,
      },
      key: key === undefined || key instanceof EncryptionKey ? key : new EncryptionKey(key),
      connection: caller.connection,
      identity,
    }
  }

  /** @internal */
  override equals(other: unknown): boolean {
    if (!(other instanceof EngineStream) || other.#services !== this.#services) return false
    const { ref, key } = other.#target
    const mine = this.#target
    return (
      other.#caller === this.#caller &&
      ref.basin === mine.ref.basin &&
      ref.stream === mine.ref.stream &&
      EncryptionKey.equal(key, mine.key)
    )
  }

  /** @internal */
  override sibling(name: string, { config, autoCreate }: SiblingOptions = {}): EngineStream {
    const { ref, creation, key } = this.#target
    const sibling = { basin: ref.basin, stream: name }
    const options = { config, encryptionKey: key }
    return new EngineStream(this.#services, this.#caller, sibling, autoCreate ?? creation.always, options)
  }

  /** @internal */
  override identity(options?: CallOptions): Promise<string> {
    return this.#run('get-stream-config', options, (ref) => this.#services.streams.logId(ref))
  }

  /** @internal */
  override async metadata(options?: CallOptions): Promise<StreamMetadata> {
    return (await this.describe(['get-stream-config'], options)).metadata
  }

  /** @internal */
  override async restore(restored: RestoredStream, options?: CallOptions): Promise<void> {
    const { creation } = this.#target
    const { defaultRetention } = this.#caller
    this.#caller.assertOwner()
    const own = ownCopy(restored)
    await this.#run('create-stream', options, (ref) =>
      this.#services.streams.restore(ref, own, defaultRetention, creation.always),
    )
  }

  override append(
    records: RecordInput | readonly RecordInput[],
    options?: AppendOptions,
  ): Promise<AppendAck> {
    try {
      const batch = borrowedBatch(records, options)
      const acked = this.appendChecked(batch, options?.signal)
      ownBytes(batch)
      return acked
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** @internal Appends a batch that was validated. Throws or rejects as `append` rejects. */
  appendChecked(batch: AppendBatch, signal?: AbortSignal): Promise<AppendAck> {
    signal?.throwIfAborted()
    const { admission, appends } = this.#services
    // Before the token is looked up: a batch that waits for that occupies memory.
    const reservation = admission.reserve(batch.meteredBytes)
    const acked = this.#caller.isOwner
      ? appends.append(this.#target, batch, reservation)
      : this.#appendAsHolder(batch, reservation, signal)
    return signal === undefined ? acked : unlessAborted(signal, acked)
  }

  override async appendSession(options?: CallOptions): Promise<AppendSession> {
    const { closing } = this.#services
    closing.throwIfAborted()
    return unlessAborted(closing, this.#openSession(signalOf(options), closing))
  }

  /** @internal The session of a producer does not end when the engine begins to close, which waits for it. */
  override producerSession(signal?: AbortSignal): Promise<AppendSession> {
    return this.#openSession(signal)
  }

  /** Opens an append session, which ends when `closing` aborts. */
  async #openSession(signal?: AbortSignal, closing?: SharedSignal): Promise<AppendSession> {
    signal?.throwIfAborted()
    const { admission, appends, clock, limits } = this.#services
    const { ref } = this.#target
    return this.#caller.open('append', this.#target, signal, async ({ permit, target, watch }) => {
      const appender = await unlessAborted(signal, appends.openAppender(target), (late) => late.release())
      return new AppendSession({
        appender,
        reserve: (bytes) => admission.reserve(bytes),
        inFlightBytes: limits.sessionInFlightBytes,
        clock,
        closing,
        signal,
        revoked: watch?.ended,
        check: (batch) => permit.authorizeCommands(ref, batch),
        onEnd: () => watch?.release(),
      })
    })
  }

  /** @internal */
  override async readUnary(
    query: ReadQuery,
    { signal, create, ...policy }: CursorOptions & { readonly signal?: AbortSignal | undefined },
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    return this.#caller.open('read', this.#readTarget(create), signal, ({ target, watch }) =>
      this.#services.reads.batch(target, query, signal, { ...policy, watch }),
    )
  }

  /** @internal */
  override openCursor(
    query: ReadQuery,
    { create, ...options }: CursorOptions,
  ): Promise<ReadCursor | undefined> {
    return this.#caller.open('read', this.#readTarget(create), undefined, ({ target, watch }) =>
      this.#services.reads.open(target, query, { ...options, watch }),
    )
  }

  override async checkTail(options?: CallOptions): Promise<StreamTail> {
    const target = this.#readTarget(false)
    return this.#caller.run('check-tail', target.ref, options, async (permit) => {
      const { tail } = await this.#services.reads.describe(permit.resolveTarget(target))
      return tail
    })
  }

  /**
   * @internal Resolves to what is known of the stream, for a caller with one of the permissions. With
   * `isRead`, it counts as a read, which keeps a stream that expires when it is idle.
   */
  async describe(
    anyOf: readonly [Operation, ...Operation[]],
    { isRead = false, ...options }: CallOptions & { readonly isRead?: boolean | undefined } = {},
  ): Promise<StreamDescription> {
    const target = this.#readTarget(false)
    const operations = { anyOf, counted: () => anyOf[0] }
    return this.#caller.run(operations, target.ref, options, (permit) =>
      this.#services.reads.describe(permit.resolveTarget(target), isRead),
    )
  }

  /**
   * @internal What this engine knows of the stream without asking the storage, for the owner only; undefined
   * if that is nothing. Another engine may have replaced the stream since.
   */
  known(): StreamDescription | undefined {
    return this.#caller.isOwner ? this.#services.reads.known(this.#target.ref) : undefined
  }

  override async config(options?: CallOptions): Promise<StreamConfig> {
    return this.#run('get-stream-config', options, (ref) => this.#services.streams.config(ref))
  }

  override async reconfigure(change: StreamReconfiguration, options?: CallOptions): Promise<StreamConfig> {
    const own = ownCopy(change)
    return this.#run('reconfigure-stream', options, (ref) =>
      this.#services.streams.reconfigure(ref, own, this.#caller.defaultRetention),
    )
  }

  override async delete(options?: CallOptions): Promise<void> {
    return this.#run('delete-stream', options, (ref) => this.#services.streams.delete(ref))
  }

  override async metrics(
    query: MetricsQuery<StreamMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    return this.#run('stream-metrics', options, (ref) => this.#services.usage.metrics.stream(ref, query))
  }

  /** Makes a call for the stream as the storage names it. */
  #run<Result>(
    operation: Operation,
    options: CallOptions | undefined,
    call: (ref: StreamRef) => Promise<Result>,
  ): Promise<Result> {
    const { ref } = this.#target
    return this.#caller.run(operation, ref, options, (permit) => call(permit.resolveRef(ref)))
  }

  async #appendAsHolder(
    batch: AppendBatch,
    reservation: AppendReservation,
    signal: AbortSignal | undefined,
  ): Promise<AppendAck> {
    try {
      const target = await this.#caller.appendTarget(this.#target, batch)
      signal?.throwIfAborted()
      return await this.#services.appends.append(target, batch, reservation)
    } finally {
      reservation.release()
    }
  }

  /** The target of a read: reading creates nothing unless it is asked to. */
  #readTarget(create = false): StreamTarget {
    const { creation } = this.#target
    if (creation.always === create) return this.#target
    return { ...this.#target, creation: { ...creation, always: create } }
  }
}
