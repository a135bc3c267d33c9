import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { BASIN_OPTIONS, type BasinOptions, Headwater } from '../../src/api/headwater.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
} from '../../src/model/access.ts'
import { assertValid } from '../../src/model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../../src/model/info.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinPrefixProblem } from '../../src/model/names.ts'
import { assertMembers, assertText, notText } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { ACCESS_TOKEN, ACCESS_TOKEN_PAGE, BASIN_PAGE, ISSUED_TOKEN } from '../../src/wire/json-resources.ts'
import { jsonCall } from './call.ts'
import type { ClientCore } from './core.ts'
import { createBasin, ensureBasin } from './creation.ts'
import { RemoteBasin } from './remote-basin.ts'
import { begin, listSearch, metricsFor } from './unary-calls.ts'

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

  override createBasin(...args: Parameters<Headwater['createBasin']>): Promise<Provisioned<BasinInfo>> {
    return this.#core.inOrder([String(args[0])], () => createBasin(this.#core.sender, ...args))
  }

  override ensureBasin(...args: Parameters<Headwater['ensureBasin']>): Promise<Provisioned<BasinInfo>> {
    return this.#core.inOrder([String(args[0])], () => ensureBasin(this.#core.sender, ...args))
  }

  override async listBasins(query: ListQuery = {}, options?: CallOptions): Promise<Page<BasinInfo>> {
    const { sender } = this.#core
    const signal = begin(sender, options)
    const call = jsonCall('GET', `/basins${listSearch(query, basinPrefixProblem)}`, { signal })
    return sender.json(call, BASIN_PAGE.of)
  }

  override async issueAccessToken(token: AccessTokenInput, options?: CallOptions): Promise<string> {
    const { sender } = this.#core
    const signal = begin(sender, options)
    // The clock of the server decides whether an expiry is in the past.
    const text = ACCESS_TOKEN.requestText(newAccessToken(token))
    const call = jsonCall('POST', '/access-tokens', { text, isRepeatable: false, signal })
    return sender.json(call, (value) => ISSUED_TOKEN.of(value).accessToken)
  }

  override async listAccessTokens(
    query: ListQuery = {},
    options?: CallOptions,
  ): Promise<Page<AccessTokenInfo>> {
    const { sender } = this.#core
    const signal = begin(sender, options)
    const call = jsonCall('GET', `/access-tokens${listSearch(query, accessTokenPrefixProblem)}`, { signal })
    return sender.json(call, ACCESS_TOKEN_PAGE.of)
  }

  override async revokeAccessToken(id: string, options?: CallOptions): Promise<void> {
    const { sender } = this.#core
    assertText(id, 'tokenId')
    const signal = begin(sender, options)
    assertValid(accessTokenIdProblem(id), 'id')
    const path = `/access-tokens/${encodeURIComponent(id)}`
    await sender.send(jsonCall('DELETE', path, { isRepeatable: false, signal }))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#core.sender, [], query, options)
  }

  override async close(options?: CallOptions): Promise<void> {
    await unlessAborted(signalOf(options), this.#core.close())
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
