import { CREATE_OPTIONS, type CreateOptions } from '../../src/api/basin.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { BASIN_OPTIONS, type BasinOptions, Headwater } from '../../src/api/headwater.ts'
import type { AccessTokenInfo, AccessTokenInput } from '../../src/model/access.ts'
import type { BasinConfigInput } from '../../src/model/config.ts'
import { assertValid } from '../../src/model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../../src/model/info.ts'
import type { AccountMetricSet, Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem } from '../../src/model/names.ts'
import { assertMembers, assertText, notText } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { ClientCore } from './core.ts'
import { loadAccount, loadControl } from './on-demand.ts'
import { RemoteBasin } from './remote-basin.ts'

/** A server, or the hosted service. */
export class RemoteHeadwater extends Headwater {
  readonly #core: ClientCore

  constructor(core: ClientCore) {
    super()
    this.#core = core
  }

  override get closing(): AbortSignal {
    return this.#core.closing.asAbortSignal()
  }

  override basin(name: string, options: BasinOptions = {}): RemoteBasin {
    if (typeof name !== 'string') throw notText('basin')
    assertMembers(options, BASIN_OPTIONS, 'options')
    const autoCreate = options.autoCreate ?? this.#core.settings.autoCreate
    return new RemoteBasin(this.#core, name, autoCreate)
  }

  override async createBasin(
    name: string,
    config: BasinConfigInput = {},
    options: CreateOptions = {},
  ): Promise<Provisioned<BasinInfo>> {
    const signal = this.#begin(name, options, CREATE_OPTIONS)
    const { createBasin } = await loadControl()
    return createBasin(this.#core.sender, name, config, { requestToken: options.requestToken, signal })
  }

  override async ensureBasin(
    name: string,
    config: BasinConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<BasinInfo>> {
    const signal = this.#begin(name, options)
    const { ensureBasin } = await loadControl()
    return ensureBasin(this.#core.sender, name, config, signal)
  }

  override async listBasins(query: ListQuery = {}, options?: CallOptions): Promise<Page<BasinInfo>> {
    const signal = this.#signalOf(options)
    const { listBasins } = await loadControl()
    return listBasins(this.#core.sender, query, signal)
  }

  override async issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string> {
    const signal = this.#signalOf(options)
    const { issueAccessToken } = await loadAccount()
    return issueAccessToken(this.#core.sender, token, { signal })
  }

  override async listAccessTokens(
    query: ListQuery = {},
    options?: CallOptions,
  ): Promise<Page<AccessTokenInfo>> {
    const signal = this.#signalOf(options)
    const { listAccessTokens } = await loadAccount()
    return listAccessTokens(this.#core.sender, query, { signal })
  }

  override async revokeAccessToken(id: string, options?: CallOptions): Promise<void> {
    assertText(id, 'tokenId')
    const signal = this.#signalOf(options)
    const { revokeAccessToken } = await loadAccount()
    await revokeAccessToken(this.#core.sender, id, { signal })
  }

  override async metrics(
    query: MetricsQuery<AccountMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    const signal = this.#signalOf(options)
    const { metrics } = await loadAccount()
    return metrics(this.#core.sender, [], query, { signal })
  }

  override async close(options?: CallOptions): Promise<void> {
    await unlessAborted(signalOf(options), this.#core.close())
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #begin(name: string, options: CallOptions | undefined, members = CREATE_OPTIONS): AbortSignal | undefined {
    assertText(name, 'basin')
    const signal = this.#signalOf(options, members)
    assertValid(basinNameProblem(name), 'basin')
    return signal
  }

  #signalOf(options: CallOptions | undefined, members?: typeof CREATE_OPTIONS): AbortSignal | undefined {
    const signal = members === undefined ? signalOf(options) : signalOf(options, members)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    return signal
  }
}
