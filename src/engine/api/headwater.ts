import type { Resource } from '../../core/permission.ts'
import type { AccessTokenInfo, AccessTokenInput } from '../../model/access.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../../model/config.ts'
import {
  type BasinInfo,
  EMPTY_PAGE,
  LIST_QUERY,
  type ListQuery,
  type LocationInfo,
  type Page,
  type Provisioned,
} from '../../model/info.ts'
import type { AccountMetricSet, Metric, MetricsQuery } from '../../model/metrics.ts'
import type { Operation } from '../../model/operations.ts'
import { assertMembers, type MembersOf, notText, orNull } from '../../model/validation.ts'
import { unlessAborted } from '../../runtime/abort.ts'
import type { ReadShare } from '../log/read-budget.ts'
import type { BasinCreation, BasinPlacement } from '../service/basin-service.ts'
import type { EngineStats } from '../service/stats.ts'
import type { Connection } from '../service/stream-target.ts'
import type { TokenAccess, TokenWatch } from '../service/token-access.ts'
import type { UsageCounters } from '../service/usage.ts'
import { Basin } from './basin.ts'
import { CALL_OPTIONS, type CallOptions, signalOf } from './call-options.ts'
import type { AlternativeOperations, Caller } from './caller.ts'
import type { Engine } from './engine.ts'
import { type ListAllQuery, listAll } from './list-all.ts'

/** Options of a basin handle. */
export interface BasinOptions {
  /**
   * Whether appends and read sessions create a missing basin and stream. By default as the engine was opened
   * (`open({ autoCreate })`), and false for holders of access tokens.
   */
  readonly autoCreate?: boolean | undefined
}

const BASIN_OPTIONS: MembersOf<BasinOptions> = { autoCreate: 'boolean' }

/** Options of `createBasin`. */
export interface CreateBasinOptions extends BasinCreation, CallOptions {}

/** Options of `ensureBasin`. */
export interface EnsureBasinOptions extends BasinPlacement, CallOptions {}

const ENSURE_BASIN_OPTIONS: MembersOf<EnsureBasinOptions> = {
  ...CALL_OPTIONS,
  scope: 'string',
  location: orNull('string'),
}
const CREATE_BASIN_OPTIONS: MembersOf<CreateBasinOptions> = {
  ...ENSURE_BASIN_OPTIONS,
  requestToken: 'string',
}

const ENSURE_BASIN: AlternativeOperations<Provisioned<BasinInfo>> = {
  anyOf: ['create-basin', 'reconfigure-basin'],
  counted: ({ result }) => (result === 'created' ? 'create-basin' : 'reconfigure-basin'),
}

/**
 * An open engine: all basins of one storage. Made by `open`.
 *
 * Errors of all methods: `invalid` for malformed input, `storage`, `transaction_conflict` when other engines
 * kept changing the same object first, `unavailable` once the engine is closed, and for holders of access
 * tokens `authn` and `permission_denied`.
 */
export class Headwater {
  readonly #engine: Engine
  readonly #caller: Caller

  /** @internal */
  constructor(engine: Engine, caller: Caller) {
    this.#engine = engine
    this.#caller = caller
  }

  /** Returns the time of the engine's clock, in milliseconds since the Unix epoch. */
  now(): number {
    return this.#engine.clock.now()
  }

  /** Aborts when the engine begins to close. */
  get closing(): AbortSignal {
    return this.#engine.closing.asAbortSignal()
  }

  /**
   * Returns the same engine for the holder of an access token, which is looked up at each call. Every call is
   * authorized. Calls reject with `authn` if the token is malformed, unknown, revoked or expired, and with
   * `permission_denied` if it does not permit the operation on the resource, whether that exists or not.
   * Sessions end with `authn` when the token does.
   */
  as(token: string): Headwater {
    return new Headwater(this.#engine, this.#caller.withToken(token, {}, false))
  }

  /** @internal The same caller on another connection: the usage metrics count appends by it. */
  onConnection(connection: Connection): Headwater {
    return new Headwater(this.#engine, this.#caller.onConnection(connection))
  }

  /**
   * @internal The holder of a token, or of none, for one request: the token is looked up once, and again
   * after a second.
   */
  asHolder(token: string | undefined, connection: Connection): Headwater {
    return new Headwater(this.#engine, this.#caller.withToken(token, connection, true))
  }

  /** @internal Resolves if the caller may perform at least one of the operations on the resource. */
  async checkPermission(operations: Operation | readonly Operation[], resource?: Resource): Promise<void> {
    const list = Array.isArray(operations) ? (operations as readonly Operation[]) : [operations as Operation]
    await this.#caller.permit(list, resource ?? {})
  }

  /** @internal Watches the caller's token; undefined for the owner. Rejects with `authn` if it has ended. */
  watchToken(): Promise<TokenWatch | undefined> {
    return this.#caller.watch()
  }

  /** @internal The memory of a response that is not sent yet. `end` must drop it. */
  openShare(end: () => void): ReadShare {
    return this.#engine.readBudget.open(end)
  }

  /**
   * Returns a handle of a basin, whether it exists or not. Throws `invalid` for a name that is not a string,
   * and for malformed options.
   */
  basin(name: string, options: BasinOptions = {}): Basin {
    if (typeof name !== 'string') throw notText('basin')
    assertMembers(options, BASIN_OPTIONS, 'options')
    const byDefault = this.#caller.isOwner && this.#engine.autoCreate
    return new Basin(this.#engine, this.#caller, name, options.autoCreate ?? byDefault)
  }

  /**
   * Creates a basin (name: 1 to 48 lower-case letters, digits and hyphens). Rejects with
   * `resource_already_exists` if it exists, unless the request token shows that the call is a repetition, and
   * with `basin_deletion_pending` if it is being deleted.
   */
  async createBasin(
    name: string,
    config: BasinConfigInput = {},
    options: CreateBasinOptions = {},
  ): Promise<Provisioned<BasinInfo>> {
    return this.#caller.run(
      'create-basin',
      { basin: name },
      options,
      () => this.#engine.basins.create(name, config, options),
      CREATE_BASIN_OPTIONS,
    )
  }

  /**
   * Makes the basin exist with exactly this configuration: creates it, changes it, or does nothing. Rejects
   * with `basin_deletion_pending` if it is being deleted.
   */
  async ensureBasin(
    name: string,
    config: BasinConfigInput = {},
    options: EnsureBasinOptions = {},
  ): Promise<Provisioned<BasinInfo>> {
    return this.#caller.run(
      ENSURE_BASIN,
      { basin: name },
      options,
      (permit) =>
        this.#engine.basins.ensure(name, config, options, (change) => {
          permit.authorize([change === 'create' ? 'create-basin' : 'reconfigure-basin'], { basin: name })
        }),
      ENSURE_BASIN_OPTIONS,
    )
  }

  /** Lists basins in the order of their names, at most 1,000 per page. */
  async listBasins(query: ListQuery = {}, options?: CallOptions): Promise<Page<BasinInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#caller.run(
      'list-basins',
      {},
      options,
      async (permit) =>
        (await permit.list(
          'basins',
          query,
          (scoped) => this.#engine.basins.list(scoped),
          ({ name }) => name,
        )) ?? EMPTY_PAGE,
    )
  }

  /** Iterates over all basins, one page at a time. */
  listAllBasins(query: ListAllQuery = {}, options?: CallOptions): AsyncGenerator<BasinInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listBasins(page, options),
      ({ name }) => name,
    )
  }

  /** Resolves to the configuration of a basin. Rejects with `basin_not_found`. */
  async basinConfig(name: string, options?: CallOptions): Promise<BasinConfig> {
    return this.#caller.run('get-basin-config', { basin: name }, options, () =>
      this.#engine.basins.config(name),
    )
  }

  /**
   * Changes the configuration of a basin: an absent member keeps its value, `null` clears it. Resolves to the
   * whole new configuration. Rejects with `basin_not_found` or `basin_deletion_pending`.
   */
  async reconfigureBasin(
    name: string,
    change: BasinReconfiguration,
    options?: CallOptions,
  ): Promise<BasinConfig> {
    return this.#caller.run('reconfigure-basin', { basin: name }, options, () =>
      this.#engine.basins.reconfigure(name, change),
    )
  }

  /**
   * Deletes a basin. Resolves once the deletion is certain; background work deletes the basin's streams and
   * then the basin. Rejects with `basin_not_found`.
   */
  async deleteBasin(name: string, options?: CallOptions): Promise<void> {
    return this.#caller.run('delete-basin', { basin: name }, options, () => this.#engine.basins.delete(name))
  }

  /**
   * Issues an access token and resolves to it. It is not stored and cannot be shown again. Rejects with
   * `resource_already_exists` if the id is in use, and with `permission_denied` if the token would permit
   * more than its issuer may do.
   */
  async issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string> {
    if (this.#caller.isOwner) {
      return this.#caller.run('issue-access-token', {}, options, async () =>
        (await this.#tokens()).issue(token),
      )
    }
    // Authorized before the input is looked at.
    const permitting = this.#caller.permit(['issue-access-token'], {})
    await unlessAborted(signalOf(options), Promise.resolve(permitting))
    const tokens = await this.#tokens()
    const input = tokens.copyInput(token)
    return this.#caller.run('issue-access-token', { tokenId: input.id }, options, ({ identity }) =>
      tokens.issue(input, identity),
    )
  }

  /**
   * Lists access tokens in the order of their ids, at most 1,000 per page. Expired tokens stay listed for a
   * day.
   */
  async listAccessTokens(query: ListQuery = {}, options?: CallOptions): Promise<Page<AccessTokenInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#caller.run('list-access-tokens', {}, options, async (permit) => {
      const tokens = await this.#tokens()
      const page = await permit.list(
        'accessTokens',
        query,
        (scoped) => tokens.list(scoped),
        ({ id }) => id,
      )
      return page ?? EMPTY_PAGE
    })
  }

  /** Iterates over all access tokens, one page at a time. */
  listAllAccessTokens(
    query: ListAllQuery = {},
    options?: CallOptions,
  ): AsyncGenerator<AccessTokenInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listAccessTokens(page, options),
      ({ id }) => id,
    )
  }

  /**
   * Revokes an access token: it is rejected from now on, and its sessions end. Rejects with
   * `access_token_not_found`.
   */
  async revokeAccessToken(id: string, options?: CallOptions): Promise<void> {
    return this.#caller.run('revoke-access-token', { tokenId: id }, options, async () =>
      (await this.#tokens()).revoke(id),
    )
  }

  /**
   * Creates the root token, which permits everything and never expires, and resolves to it, or to undefined
   * if there is one. Only for the owner of the engine.
   */
  async createRootToken(options?: CallOptions): Promise<string | undefined> {
    this.#caller.assertOwner()
    const tokens = await this.#tokensUnless(options)
    // Not abandoned from here on: a token that was created must reach the caller.
    return tokens.createRoot()
  }

  /** Replaces the root token: 16 to 1,024 characters of visible ASCII. Only for the owner of the engine. */
  async setRootToken(token: string, options?: CallOptions): Promise<void> {
    this.#caller.assertOwner()
    const tokens = await this.#tokensUnless(options)
    await tokens.setRoot(token)
  }

  /**
   * Resolves to usage metrics of the account (docs/protocol.md "Usage metrics"). Rejects with `unavailable`
   * unless the engine meters usage.
   */
  async metrics(query: MetricsQuery<AccountMetricSet>, options?: CallOptions): Promise<readonly Metric[]> {
    return this.#caller.run('account-metrics', {}, options, async (permit) => {
      const metrics = await this.#engine.usage.metrics.account(query)
      // Labels are names of basins, so the token's scope applies.
      return metrics.map((metric) =>
        metric.kind === 'label'
          ? { ...metric, values: metric.values.filter((name) => permit.covers('basins', name)) }
          : metric,
      )
    })
  }

  /** Lists the locations where basins can be. */
  async listLocations(options?: CallOptions): Promise<readonly LocationInfo[]> {
    return this.#caller.run('list-locations', {}, options, () => this.#engine.locations.list())
  }

  /** Resolves to the location of basins that are created without one. */
  async defaultLocation(options?: CallOptions): Promise<LocationInfo> {
    return this.#caller.run('get-default-location', {}, options, () => this.#engine.locations.default())
  }

  /**
   * Sets the location of basins that are created without one. Rejects with `invalid` for an unknown location.
   */
  async setDefaultLocation(name: string, options?: CallOptions): Promise<LocationInfo> {
    return this.#caller.run('set-default-location', {}, options, () =>
      this.#engine.locations.setDefault(name),
    )
  }

  /**
   * Resolves when the storage answers. Rejects with `storage` or `unavailable` when it does not. Only for the
   * owner of the engine.
   */
  async checkStorage(options?: CallOptions): Promise<void> {
    this.#caller.assertOwner()
    await unlessAborted(signalOf(options), this.#engine.checkStorage())
  }

  /** Returns counts of what is open. Only for the owner of the engine. */
  stats(): EngineStats {
    this.#caller.assertOwner()
    return this.#engine.stats()
  }

  /**
   * Resolves to totals since the engine was opened. Rejects with `unavailable` unless it meters usage. Only
   * for the owner of the engine.
   */
  async counters(options?: CallOptions): Promise<UsageCounters> {
    this.#caller.assertOwner()
    signalOf(options)?.throwIfAborted()
    return this.#engine.usage.counters()
  }

  /**
   * Ends open sessions with `unavailable`, waits for appends in flight and closes the storage. A second call
   * waits for the first. Only for the owner of the engine.
   */
  async close(): Promise<void> {
    this.#caller.assertOwner()
    await this.#engine.close()
  }

  /** Closes the engine for `await using`. For the holder of an access token it does nothing. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#caller.isOwner) await this.close()
  }

  #tokensUnless(options: CallOptions | undefined): Promise<TokenAccess> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    return unlessAborted(signal, this.#tokens())
  }

  #tokens(): Promise<TokenAccess> {
    return this.#engine.tokens.load(this.#engine.closing)
  }
}
