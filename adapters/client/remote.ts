import type { AppendOptions, AppendSession } from '../../src/api/append-session.ts'
import { Basin, type CreateStreamOptions } from '../../src/api/basin.ts'
import {
  type CallOptions,
  type SiblingOptions,
  STREAM_OPTIONS,
  type StreamOptions,
  signalOf,
} from '../../src/api/call-options.ts'
import { BASIN_OPTIONS, type BasinOptions, Headwater } from '../../src/api/headwater.ts'
import type { CursorOptions, RecordCursor } from '../../src/api/record-cursor.ts'
import { Stream } from '../../src/api/stream.ts'
import { planMetrics } from '../../src/core/usage/metrics-plan.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
} from '../../src/model/access.ts'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type BasinReconfiguration,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import {
  type AppendAck,
  type BasinInfo,
  LIST_QUERY,
  type ListQuery,
  type Page,
  type Provisioned,
  type StreamInfo,
  type StreamMetadata,
} from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, basinPrefixProblem, streamPrefixProblem } from '../../src/model/names.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { assertMembers, assertText } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ReadBatch } from '../../src/storage/record-batch.ts'
import {
  basinChangeText,
  basinConfigOf,
  streamChangeText,
  streamConfigOf,
} from '../../src/wire/json-config.ts'
import {
  ACCESS_TOKEN,
  ACCESS_TOKEN_PAGE,
  BASIN_PAGE,
  ISSUED_TOKEN,
  metricsOf,
  STREAM_PAGE,
} from '../../src/wire/json-resources.ts'
import { listQueryParts, metricsQueryParts, queryText } from '../../src/wire/query.ts'
import { appendByRequest } from './append.ts'
import { openAppendSession } from './append-session.ts'
import { begin, jsonCall } from './call.ts'
import type { ClientCore } from './core.ts'
import {
  basinConfig,
  createBasin,
  createIfMissing,
  createStream,
  ensureBasin,
  ensureStream,
  withKeptRetention,
  withStreamRetention,
} from './creation.ts'
import { RemoteCursor, readBatch, tailOf } from './read.ts'
import type { Sender } from './sender.ts'
import { RemoteTarget } from './stream-target.ts'

/** A server, or the hosted service. */
export class RemoteHeadwater extends Headwater {
  readonly #core: ClientCore
  readonly #sender: Sender

  constructor(core: ClientCore) {
    super()
    this.#core = core
    this.#sender = core.sender
  }

  override get closing(): AbortSignal {
    return this.#core.closing.asAbortSignal()
  }

  override basin(name: string, options: BasinOptions = {}): RemoteBasin {
    assertText(name, 'basin')
    assertMembers(options, BASIN_OPTIONS, 'options')
    const autoCreate = options.autoCreate ?? this.#core.settings.autoCreate
    return new RemoteBasin(this.#core, name, autoCreate)
  }

  override createBasin(...args: Parameters<Headwater['createBasin']>): Promise<Provisioned<BasinInfo>> {
    return this.#core.inOrder([String(args[0])], () => createBasin(this.#sender, ...args))
  }

  override ensureBasin(...args: Parameters<Headwater['ensureBasin']>): Promise<Provisioned<BasinInfo>> {
    return this.#core.inOrder([String(args[0])], () => ensureBasin(this.#sender, ...args))
  }

  override async listBasins(query: ListQuery = {}, options?: CallOptions): Promise<Page<BasinInfo>> {
    const signal = begin(this.#sender, options)
    const call = jsonCall('GET', `/basins${listSearch(query, basinPrefixProblem)}`, { signal })
    return this.#sender.json(call, BASIN_PAGE.of)
  }

  override async issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string> {
    const signal = begin(this.#sender, options)
    // The clock of the server decides whether an expiry is in the past.
    const text = ACCESS_TOKEN.requestText(newAccessToken(token))
    const call = jsonCall('POST', '/access-tokens', { text, isRepeatable: false, signal })
    return this.#sender.json(call, (value) => ISSUED_TOKEN.of(value).accessToken)
  }

  override async listAccessTokens(
    query: ListQuery = {},
    options?: CallOptions,
  ): Promise<Page<AccessTokenInfo>> {
    const signal = begin(this.#sender, options)
    const call = jsonCall('GET', `/access-tokens${listSearch(query, accessTokenPrefixProblem)}`, { signal })
    return this.#sender.json(call, ACCESS_TOKEN_PAGE.of)
  }

  override async revokeAccessToken(id: string, options?: CallOptions): Promise<void> {
    assertText(id, 'tokenId')
    const signal = begin(this.#sender, options)
    assertValid(accessTokenIdProblem(id), 'id')
    const path = `/access-tokens/${encodeURIComponent(id)}`
    await this.#sender.send(jsonCall('DELETE', path, { isRepeatable: false, signal }))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#sender, [], query, options)
  }

  override async close(options?: CallOptions): Promise<void> {
    await unlessAborted(signalOf(options), this.#core.close())
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** A basin of a server. */
export class RemoteBasin extends Basin {
  readonly #core: ClientCore
  readonly #sender: Sender
  readonly #autoCreate: boolean

  constructor(core: ClientCore, name: string, autoCreate: boolean) {
    super(name)
    this.#core = core
    this.#sender = core.sender
    this.#autoCreate = autoCreate
  }

  override stream(name: string, options: StreamOptions = {}): RemoteStream {
    assertText(name, 'stream')
    assertMembers(options, STREAM_OPTIONS, 'options')
    return new RemoteStream(this.#core, new RemoteTarget([this.name, name], options, this.#autoCreate))
  }

  override createStream(
    name: string,
    ...args: [config?: StreamConfigInput, options?: CreateStreamOptions]
  ): Promise<Provisioned<StreamInfo>> {
    const names = [this.name, name] as const
    return this.#core.inOrder(this.#order(name), () => createStream(this.#sender, names, ...args))
  }

  override ensureStream(
    name: string,
    ...args: [config?: StreamConfigInput, options?: CallOptions]
  ): Promise<Provisioned<StreamInfo>> {
    const names = [this.name, name] as const
    return this.#core.inOrder(this.#order(name), () => ensureStream(this.#sender, names, ...args))
  }

  override async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    const signal = begin(this.#sender, options)
    const search = listSearch(query, streamPrefixProblem)
    assertValid(basinNameProblem(this.name), 'basin')
    const call = jsonCall('GET', `/streams${search}`, { basin: this.name, signal })
    return this.#sender.json(call, STREAM_PAGE.of)
  }

  override async config(options?: CallOptions): Promise<BasinConfig> {
    return basinConfig(this.#sender, this.name, options)
  }

  override async reconfigure(change: BasinReconfiguration, options?: CallOptions): Promise<BasinConfig> {
    const signal = begin(this.#sender, options, [this.name])
    assertBasinConfig(change)
    const text = basinChangeText(withKeptRetention(this.#sender, change))
    const call = jsonCall('PATCH', `/basins/${this.name}`, { text, signal })
    return this.#sender.json(call, basinConfigOf)
  }

  /** Is not repeated after an unknown outcome: another basin may have the name by then. */
  override async delete(options?: CallOptions): Promise<void> {
    const signal = begin(this.#sender, options, [this.name])
    await this.#sender.send(jsonCall('DELETE', `/basins/${this.name}`, { isRepeatable: false, signal }))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#sender, [this.name], query, options)
  }

  /** The place of a creation among other calls. The name is not checked yet: it may be a symbol. */
  #order(name: string): readonly [basin: string, stream: string] {
    return [this.name, String(name)]
  }
}

/** A stream of a server. */
export class RemoteStream extends Stream {
  readonly #core: ClientCore
  readonly #sender: Sender
  readonly #target: RemoteTarget

  constructor(core: ClientCore, target: RemoteTarget) {
    super(...target.names, core.streamContext)
    this.#core = core
    this.#sender = core.sender
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

  override async metadata(): Promise<StreamMetadata> {
    throw new HeadwaterError('unsupported', 'servers do not send the metadata of a stream')
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
      const reservation = this.#core.streamContext.reserve(batch.meteredBytes)
      const acked = this.#core
        .inOrder(this.#target.names, async () => {
          signal?.throwIfAborted()
          return appendByRequest(this.#sender, this.#target, batch)
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
    return this.#reading(create, () => readBatch(this.#sender, this.#target, query, signal))
  }

  override async openCursor(
    query: ReadQuery,
    { create, ...options }: CursorOptions,
  ): Promise<RecordCursor | undefined> {
    this.#begin()
    return this.#reading(create, () => RemoteCursor.open(this.#sender, this.#target, query, options))
  }

  override async checkTail(options?: CallOptions): Promise<StreamTail> {
    return tailOf(this.#sender, this.#target, this.#begin(options))
  }

  override async config(options?: CallOptions): Promise<StreamConfig> {
    const signal = this.#begin(options)
    return this.#sender.json(
      jsonCall('GET', this.#target.path, { basin: this.basinName, signal }),
      streamConfigOf,
    )
  }

  override async reconfigure(change: StreamReconfiguration, options?: CallOptions): Promise<StreamConfig> {
    const basin = this.basinName
    const signal = this.#begin(options)
    assertStreamConfig(change)
    const isCleared = change.retentionPolicy === null
    const complete = isCleared ? await withStreamRetention(this.#sender, basin, change, signal) : change
    const call = jsonCall('PATCH', this.#target.path, { basin, text: streamChangeText(complete), signal })
    return this.#sender.json(call, streamConfigOf)
  }

  /** Is not repeated after an unknown outcome: another stream may have the name by then. */
  override async delete(options?: CallOptions): Promise<void> {
    const signal = this.#begin(options)
    const call = { basin: this.basinName, isRepeatable: false, signal }
    await this.#sender.send(jsonCall('DELETE', this.#target.path, call))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#sender, [this.basinName, this.name], query, options)
  }

  #begin(options?: CallOptions): AbortSignal | undefined {
    return begin(this.#sender, options, this.#target.names)
  }

  /** Reading creates the stream only if it is asked to. */
  #reading<Result>(create = false, read: () => Promise<Result>): Promise<Result> {
    return createIfMissing(this.#sender, this.#target, create, read)
  }
}

/** The query of a list. Throws `invalid`, also for what `problemOf` finds. */
function listSearch(
  query: ListQuery,
  problemOf: (text: string, role: 'prefix' | 'start-after') => string | undefined,
): string {
  assertMembers(query, LIST_QUERY, 'query')
  assertValid(problemOf(query.prefix ?? '', 'prefix'), 'prefix')
  assertValid(problemOf(query.startAfter ?? '', 'start-after'), 'startAfter')
  return queryText(listQueryParts(query))
}

/** @param names The basin, or the basin and the stream, whose metrics are asked for; none for the account. */
async function metricsFor(
  sender: Sender,
  names: readonly string[],
  query: MetricsQuery,
  options?: CallOptions,
): Promise<readonly Metric[]> {
  const signal = begin(sender, options)
  const level = (['account', 'basin', 'stream'] as const)[names.length]!
  // The clock of the server decides what is in the future.
  planMetrics(level, query, Number.POSITIVE_INFINITY)
  // The paths of the protocol have no place for names of basins that are shorter; those of headwater's own
  // do.
  const isShort = names[0] !== undefined && names[0].length < BASIN_NAME_BYTES_MIN_ON_POST
  const path = [isShort ? '/../metrics' : '/metrics', ...names.map(encodeURIComponent)].join('/')
  const call = jsonCall('GET', `${path}${queryText(metricsQueryParts(query))}`, { signal })
  return sender.json(call, metricsOf)
}
