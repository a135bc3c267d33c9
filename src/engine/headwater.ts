import type { Resource } from '../core/permission.ts'
import type { AccessTokenInfo, AccessTokenInput } from '../model/access.ts'
import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../model/config.ts'
import type { BasinInfo, ListQuery, LocationInfo, Page, Provisioned } from '../model/info.ts'
import type { AccountMetricSet, Metric, MetricsQuery } from '../model/metrics.ts'
import type { Operation } from '../model/operations.ts'
import { Basin } from './basin.ts'
import type { CreateBasinOptions } from './control/basins.ts'
import { permissionDenied, storageError } from './errors.ts'
import type { EngineStats } from './stats.ts'
import type { UsageCounters } from './usage/usage-counters.ts'
import type { EngineView, OwnerServices } from './view.ts'
import type { ViewOptions, Views } from './views.ts'

export interface BasinOptions {
  /** Whether first use of a stream creates it, and its basin; by default as the engine was opened, and not by the holder of a token. */
  readonly autoCreate?: boolean
}

/** What all views of an engine share. */
export interface OpenEngine {
  readonly views: Views
  stats(): EngineStats
  counters(): Promise<UsageCounters>
  /** Calls after the first wait for it. */
  close(): Promise<void>
}

/** An open engine: all basins of one storage. Made by `open`. */
export class Headwater {
  readonly #engine: OpenEngine
  readonly #view: EngineView

  constructor(engine: OpenEngine, view: EngineView) {
    this.#engine = engine
    this.#view = view
  }

  /** Milliseconds since the Unix epoch, by the engine's clock. */
  now(): number {
    return this.#view.engine.settings.clock.now()
  }

  /** Aborts when the engine begins to close. */
  get closing(): AbortSignal {
    return this.#view.engine.closing
  }

  /**
   * The same engine for whoever presents this access token: every call is checked, and rejects with `authn` (401) when the token is malformed,
   * unknown, revoked or expired, with `permission_denied` (403) when it does not permit the operation or the resource, whether that exists or not.
   * Sessions end with `authn` when the token does. service-interface.md "Authentication", rulings.md "Tokens".
   */
  as(token: string): Headwater {
    return this.view({ token })
  }

  /** The same engine for another caller. */
  view(options: ViewOptions): Headwater {
    return new Headwater(this.#engine, this.#engine.views.of(options, this.#view))
  }

  /**
   * Resolves when the caller may do at least one of the operations on the resource, and rejects otherwise with `authn` or `permission_denied`:
   * to know before an input is taken in. Each call checks for itself again.
   */
  async checkPermission(operations: Operation | readonly Operation[], resource?: Resource): Promise<void> {
    await this.#view.check(operations, resource ?? {})
  }

  basin(name: string, options: BasinOptions = {}): Basin {
    const byDefault = this.#view.owner !== undefined && this.#view.engine.settings.autoCreate
    return new Basin(this.#view, name, options.autoCreate ?? byDefault)
  }

  /**
   * Creates a basin (name: 1 to 48 lower-case letters, digits and hyphens). With a request token a repetition is a `noop`; else an existing
   * basin is `resource_already_exists` (409). wire-behaviour.md 8.2.
   */
  createBasin(
    name: string,
    config: BasinConfigInput = {},
    options: CreateBasinOptions = {},
  ): Promise<Provisioned<BasinInfo>> {
    return this.#view.basins.create(name, config, options)
  }

  /** Makes the basin exist with exactly this configuration (wire-behaviour.md 8.3). */
  ensureBasin(
    name: string,
    config: BasinConfigInput = {},
    options: Omit<CreateBasinOptions, 'requestToken'> = {},
  ): Promise<Provisioned<BasinInfo>> {
    return this.#view.basins.ensure(name, config, options)
  }

  listBasins(query: ListQuery = {}): Promise<Page<BasinInfo>> {
    return this.#view.basins.list(query)
  }

  basinConfig(name: string): Promise<BasinConfig> {
    return this.#view.basins.config(name)
  }

  /** Absent keeps, `null` clears, a value sets. Resolves to the whole new configuration. */
  reconfigureBasin(name: string, change: BasinReconfiguration): Promise<BasinConfig> {
    return this.#view.basins.reconfigure(name, change)
  }

  /** Resolves once the deletion is certain. The basin's streams, and then the basin, go in the background. */
  deleteBasin(name: string): Promise<void> {
    return this.#view.basins.delete(name)
  }

  /**
   * Issues an access token and resolves to it: it is told here and nowhere else. Its id must be new (409 `resource_already_exists`); it can permit no
   * more than its issuer may do (403 `permission_denied`). wire-behaviour.md 9.1.
   */
  issueAccessToken(token: AccessTokenInput): Promise<string> {
    return this.#view.tokens.issue(token)
  }

  /** Tokens in the order of their ids; those that have expired too, for a while. */
  listAccessTokens(query: ListQuery = {}): Promise<Page<AccessTokenInfo>> {
    return this.#view.tokens.list(query)
  }

  /** The token is refused from now on, and sessions that it opened end. Unknown: 404 `access_token_not_found`. */
  revokeAccessToken(id: string): Promise<void> {
    return this.#view.tokens.revoke(id)
  }

  /** Makes the root token, which permits everything for ever, unless there is one: then undefined. For the owner alone. */
  async createRootToken(): Promise<string | undefined> {
    return this.#owner().createRootToken()
  }

  /** Makes this the root token in place of another: 16 to 1,024 characters of visible ASCII. For the owner alone. */
  async setRootToken(token: string): Promise<void> {
    await this.#owner().setRootToken(token)
  }

  /** Usage of the account (wire-behaviour.md 11.2); `start` and `end` are required. Errors: `invalid`. */
  metrics(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    return this.#view.metrics.account(query)
  }

  listLocations(): Promise<readonly LocationInfo[]> {
    return this.#view.locations.list()
  }

  /** Where basins come to be that ask for no place. */
  defaultLocation(): Promise<LocationInfo> {
    return this.#view.locations.default()
  }

  setDefaultLocation(name: string): Promise<LocationInfo> {
    return this.#view.locations.setDefault(name)
  }

  /** Resolves when the storage answers, rejects with `storage` or `unavailable` when it does not. For the owner alone. */
  async checkStorage(): Promise<void> {
    this.#owner()
    await storageError(this.#view.engine.session.get('settings', ''))
  }

  /** For the owner alone. */
  stats(): EngineStats {
    this.#owner()
    return this.#engine.stats()
  }

  /** Totals of what this engine did since it was opened. For the owner alone. */
  async counters(): Promise<UsageCounters> {
    this.#owner()
    return this.#engine.counters()
  }

  /**
   * Ends open sessions with `unavailable`, waits for appends in flight, and closes the storage. A second call waits for the first. For the
   * owner alone.
   */
  async close(): Promise<void> {
    this.#owner()
    await this.#engine.close()
  }

  /** Closes the engine; the view of a token's holder has nothing to close. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#view.owner !== undefined) await this.close()
  }

  #owner(): OwnerServices {
    if (this.#view.owner === undefined) throw permissionDenied()
    return this.#view.owner
  }
}
