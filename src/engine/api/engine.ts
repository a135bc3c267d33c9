import { CREATE_OPTIONS, type CreateOptions } from '../../api/basin.ts'
import { type CallOptions, STREAM_OPTIONS, type StreamOptions, signalOf } from '../../api/call-options.ts'
import { BASIN_OPTIONS, type BasinOptions, Headwater } from '../../api/headwater.ts'
import type { Resource } from '../../core/permission.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  newAccessToken,
  type Operation,
} from '../../model/access.ts'
import type { BasinConfigInput } from '../../model/config.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import {
  type BasinInfo,
  LIST_QUERY,
  type ListQuery,
  LOCATION,
  type LocationInfo,
  type Page,
  type Provisioned,
  type RestoredStream,
  type StreamInfo,
} from '../../model/info.ts'
import type { AccountMetricSet, Metric, MetricsQuery } from '../../model/metrics.ts'
import { locationNameProblem, type StreamRef } from '../../model/names.ts'
import { assertMembers, assertText, ownCopy } from '../../model/validation.ts'
import { onAbort, unlessAborted } from '../../runtime/abort.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import { type AlternativeOperations, Caller } from '../access/caller.ts'
import type { ReadShare } from '../log/read-budget.ts'
import { engineSettings, type OpenOptions } from '../options.ts'
import type { ExpectedIdentity } from '../streams/table.ts'
import type { UsageConnection, UsageCounters } from '../usage.ts'
import { EngineBasin } from './engine-basin.ts'
import { type EngineServices, type EngineStats, openServices } from './engine-services.ts'
import { EngineStream } from './engine-stream.ts'

const ENSURE_BASIN: AlternativeOperations<Provisioned<BasinInfo>> = {
  anyOf: ['create-basin', 'reconfigure-basin'],
  counted: ({ result }) => (result === 'created' ? 'create-basin' : 'reconfigure-basin'),
}

/**
 * An open engine: a `Headwater` on a storage, made by `open`, with what only its owner can do.
 *
 * ```ts
 * await hw.checkStorage()
 * await hw.setRootToken(process.env.ROOT_TOKEN ?? '')
 * hw.closing.addEventListener('abort', () => console.log('the engine is closing'))
 * const start = { seqNum: 100, timestamp: hw.now() }
 * await hw.restoreStream({ basin: 'shop', stream: 'orders' }, { start, fencingToken: 'writer-1' })
 * ```
 */
export class Engine extends Headwater {
  readonly #services: EngineServices
  readonly #caller: Caller

  /** @internal */
  constructor(services: EngineServices, caller: Caller) {
    super()
    this.#services = services
    this.#caller = caller
  }

  /** Returns the time of the engine's clock, in milliseconds since the Unix epoch. */
  now(): number {
    return this.#services.clock.now()
  }

  override get closing(): AbortSignal {
    return this.#services.closing.asAbortSignal()
  }

  /**
   * Returns the same engine for the holder of an access token, which is looked up at each call. Every call is
   * authorized. Calls reject with `authn` if the token is malformed, unknown, revoked or expired, and with
   * `permission_denied` if it does not permit the operation on the resource, whether that exists or not.
   * Sessions end with `authn` when the token does.
   */
  as(token: string): Engine {
    return new Engine(this.#services, this.#caller.withToken(token))
  }

  /**
   * @internal The same caller on another connection, by which the usage metrics count appends. What it
   * creates has this retention by default, or else the protocol's.
   */
  onConnection(connection: UsageConnection, defaultRetention?: Caller['defaultRetention']): Engine {
    return new Engine(this.#services, this.#caller.onConnection(connection, defaultRetention))
  }

  /**
   * @internal Resolves to the same engine for the holder of a token, or of none, who may perform at least one
   * of the operations on the resource. The token is looked up once for a request, and again after a second.
   */
  async asHolder(
    token: MaybePromise<string | undefined>,
    operations: readonly Operation[],
    resource: Resource = {},
  ): Promise<Engine> {
    return new Engine(this.#services, await this.#caller.asHolder(await token, operations, resource))
  }

  /** @internal Resolves to the items whose streams the caller may see, with its names of them. */
  async visible<Item extends StreamRef>(items: readonly Item[]): Promise<Item[]> {
    return this.#caller.visible(items)
  }

  /** @internal Counts the memory of a response that is not sent yet. `end` must drop it. */
  openShare(bytes: number, end: () => void): ReadShare {
    const share = this.#services.readBudget.open(end)
    share.resize(bytes)
    return share
  }

  override basin(name: string, options: BasinOptions = {}): EngineBasin {
    assertText(name, 'basin')
    assertMembers(options, BASIN_OPTIONS, 'options')
    const byDefault = this.#caller.isOwner && this.#services.autoCreate
    return new EngineBasin(this.#services, this.#caller, name, options.autoCreate ?? byDefault)
  }

  /** @internal Like the method of a basin, without an object for it. An append creates no stream unasked. */
  streamOf(ref: StreamRef, options: StreamOptions, identity?: ExpectedIdentity): EngineStream {
    assertMembers(options, STREAM_OPTIONS, 'options')
    return new EngineStream(this.#services, this.#caller, ref, false, { ...options, identity })
  }

  override async createBasin(
    name: string,
    config: BasinConfigInput = {},
    options: CreateOptions = {},
  ): Promise<Provisioned<BasinInfo>> {
    const own = ownCopy(config)
    return this.#caller.run(
      'create-basin',
      { basin: name },
      options,
      () => this.#services.basins.create(name, own, options.requestToken, this.#caller.defaultRetention),
      CREATE_OPTIONS,
    )
  }

  override async ensureBasin(
    name: string,
    config: BasinConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<BasinInfo>> {
    const own = ownCopy(config)
    return this.#caller.run(ENSURE_BASIN, { basin: name }, options, (permit) =>
      this.#services.basins.ensure(name, own, this.#caller.defaultRetention, (change) => {
        permit.authorize([change === 'create' ? 'create-basin' : 'reconfigure-basin'], { basin: name })
      }),
    )
  }

  override async listBasins(query: ListQuery = {}, options?: CallOptions): Promise<Page<BasinInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#caller.run('list-basins', {}, options, (permit) =>
      permit.list('basins', query, (scoped) => this.#services.basins.list(scoped)),
    )
  }

  override async issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string> {
    return this.#caller.run('issue-access-token', {}, options, async (permit) => {
      const input = newAccessToken(token)
      permit.authorize(['issue-access-token'], { tokenId: input.id })
      return this.#services.tokens.issue(input, permit.identity)
    })
  }

  override async listAccessTokens(
    query: ListQuery = {},
    options?: CallOptions,
  ): Promise<Page<AccessTokenInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#caller.run('list-access-tokens', {}, options, (permit) =>
      permit.list('accessTokens', query, (scoped) => this.#services.tokens.list(scoped)),
    )
  }

  override async revokeAccessToken(id: string, options?: CallOptions): Promise<void> {
    return this.#caller.run('revoke-access-token', { tokenId: id }, options, () =>
      this.#services.tokens.revoke(id),
    )
  }

  /**
   * Creates the root token, which permits everything and never expires, and resolves to it, or to undefined
   * if there is one. Only for the owner of the engine.
   */
  async createRootToken(options?: CallOptions): Promise<string | undefined> {
    return this.#asOwner(options, () => this.#services.tokens.createRoot())
  }

  /** Replaces the root token: 16 to 1,024 characters of visible ASCII. Only for the owner of the engine. */
  async setRootToken(token: string, options?: CallOptions): Promise<void> {
    return this.#asOwner(options, () => this.#services.tokens.setRoot(token))
  }

  override async metrics(
    query: MetricsQuery<AccountMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    return this.#caller.run('account-metrics', {}, options, async (permit) => {
      const metrics = await this.#services.usage.metrics.account(query)
      // Labels are names of basins, so the token's scope applies.
      return metrics.map((metric) =>
        metric.kind === 'label'
          ? { ...metric, values: metric.values.filter((name) => permit.covers('basins', name)) }
          : metric,
      )
    })
  }

  /** @internal Lists the locations where basins can be: the one. */
  async listLocations(options?: CallOptions): Promise<readonly LocationInfo[]> {
    return this.#caller.run('list-locations', {}, options, async () => [LOCATION])
  }

  /** @internal Resolves to the location of basins that are created without one. */
  async defaultLocation(options?: CallOptions): Promise<LocationInfo> {
    return this.#caller.run('get-default-location', {}, options, async () => LOCATION)
  }

  /** @internal Rejects with `invalid` for a name other than that of the one location. */
  async setDefaultLocation(name: string, options?: CallOptions): Promise<LocationInfo> {
    return this.#caller.run('set-default-location', {}, options, async () => {
      assertValid(locationNameProblem(name), 'location')
      if (name === LOCATION.name) return LOCATION
      throw invalid(`unknown location \`${name}\`; expected one of ${LOCATION.name}`, 'location')
    })
  }

  /**
   * Creates a stream that continues another one: its first record gets the sequence number `start.seqNum`, no
   * record gets a timestamp below `start.timestamp`, and everything before counts as trimmed. For copying
   * streams. Only for the owner of the engine.
   *
   * Errors: `resource_already_exists`, also when the stream is empty; `invalid` for numbers beyond 2^53 - 1,
   * a fencing token of more than 36 bytes and an unknown cipher.
   */
  async restoreStream(ref: StreamRef, restored: RestoredStream, options?: CallOptions): Promise<StreamInfo> {
    this.#caller.assertOwner()
    const own = ownCopy(restored)
    return this.#caller.run('create-stream', ref, options, (permit) =>
      this.#services.streams.restore(permit.resolveRef(ref), own, this.#caller.defaultRetention),
    )
  }

  /** Resolves when the storage answers. Rejects with `storage` or `closed`. Only for the engine's owner. */
  async checkStorage(options?: CallOptions): Promise<void> {
    this.#caller.assertOwner()
    await unlessAborted(signalOf(options), this.#services.checkStorage())
  }

  /** Returns counts of what is open. Only for the owner of the engine. */
  stats(): EngineStats {
    this.#caller.assertOwner()
    return this.#services.stats()
  }

  /**
   * Resolves to totals since the engine was opened. Rejects with `unsupported` unless it meters usage. Only
   * for the owner of the engine.
   */
  async counters(options?: CallOptions): Promise<UsageCounters> {
    this.#caller.assertOwner()
    signalOf(options)?.throwIfAborted()
    return this.#services.usage.counters()
  }

  override async close(options?: CallOptions): Promise<void> {
    this.#caller.assertOwner()
    await unlessAborted(signalOf(options), this.#services.close())
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.#caller.isOwner) await this.close()
  }

  /** The signal does not end the call: a token that was created must reach the caller. */
  #asOwner<Result>(options: CallOptions | undefined, call: () => Promise<Result>): Promise<Result> {
    this.#caller.assertOwner()
    signalOf(options)?.throwIfAborted()
    return this.#caller.track(call)
  }
}

/**
 * Opens an engine on a storage.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const chat = hw.basin('my-app').stream('chats/42')
 * await chat.append('hello')
 * ```
 *
 * Errors: `storage` when the storage cannot be opened; `invalid` for invalid options.
 */
export async function open(options: OpenOptions): Promise<Engine> {
  const settings = engineSettings(options)
  const { signal } = options
  const services = await openServices(settings, signal)
  if (signal !== undefined) {
    const ignore = onAbort(signal, () => services.close().catch(settings.onBackgroundError))
    onAbort(services.closing, ignore)
  }
  return new Engine(services, Caller.owner(services))
}
