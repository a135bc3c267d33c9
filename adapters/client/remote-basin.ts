import { Basin, CREATE_OPTIONS, type CreateOptions } from '../../src/api/basin.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { STREAM_OPTIONS, type StreamOptions } from '../../src/api/stream.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type BasinReconfiguration,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../src/model/info.ts'
import type { BasinMetricSet, Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, streamNameProblem, streamPrefixProblem } from '../../src/model/names.ts'
import { assertMembers, assertText, notText } from '../../src/model/validation.ts'
import { basinConfigOf, pageOf, streamInfoOf } from '../../src/wire/decode-resources.ts'
import { basinChangeText, createStreamText, streamConfigText } from '../../src/wire/encode-resources.ts'
import { creationOf, jsonCall, listSearch, provisionedOf } from './calls.ts'
import type { ClientCore } from './core.ts'
import { loadAccount } from './load-account.ts'
import { RemoteStream } from './remote-stream.ts'
import { StreamTarget } from './stream-target.ts'

/** A basin of a server. */
export class RemoteBasin extends Basin {
  readonly #core: ClientCore
  readonly #autoCreate: boolean

  constructor(core: ClientCore, name: string, autoCreate: boolean) {
    super(name)
    this.#core = core
    this.#autoCreate = autoCreate
  }

  override stream(name: string, options: StreamOptions = {}): RemoteStream {
    if (typeof name !== 'string') throw notText('stream')
    assertMembers(options, STREAM_OPTIONS, 'options')
    return new RemoteStream(this.#core, new StreamTarget(this, name, options, this.#autoCreate))
  }

  override async createStream(
    name: string,
    config: StreamConfigInput = {},
    options: CreateOptions = {},
  ): Promise<Provisioned<StreamInfo>> {
    const signal = this.#beginStream(name, options, CREATE_OPTIONS)
    const creation = creationOf(options.requestToken)
    assertStreamConfig(config)
    this.assertName()
    const call = jsonCall('POST', '/streams', {
      basin: this.name,
      text: createStreamText(name, await this.withRetention(config, signal)),
      vendor: { 'request-token': creation.header },
      signal,
    })
    return this.#core.sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply, creation))
  }

  override async ensureStream(
    name: string,
    config: StreamConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<StreamInfo>> {
    const signal = this.#beginStream(name, options)
    assertStreamConfig(config)
    this.assertName()
    const call = jsonCall('PUT', `/streams/${encodeURIComponent(name)}`, {
      basin: this.name,
      text: streamConfigText(await this.withRetention(config, signal)),
      signal,
    })
    return this.#core.sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply))
  }

  override async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    const signal = this.#begin(options)
    const search = listSearch(query, streamPrefixProblem)
    this.assertName()
    const call = jsonCall('GET', `/streams${search}`, { basin: this.name, signal })
    return this.#core.sender.json(call, (value) => pageOf(value, 'streams', streamInfoOf))
  }

  override async config(options?: CallOptions): Promise<BasinConfig> {
    const signal = this.#begin(options)
    this.assertName()
    return this.#core.sender.json(jsonCall('GET', this.#path, { signal }), basinConfigOf)
  }

  override async reconfigure(change: BasinReconfiguration, options?: CallOptions): Promise<BasinConfig> {
    const signal = this.#begin(options)
    assertBasinConfig(change)
    this.assertName()
    const call = jsonCall('PATCH', this.#path, {
      text: basinChangeText(await this.#keepingRetention(change, signal)),
      signal,
    })
    return this.#core.sender.json(call, basinConfigOf)
  }

  override async delete(options?: CallOptions): Promise<void> {
    const signal = this.#begin(options)
    this.assertName()
    // Not repeated after an unknown outcome: another basin may have the name by then.
    await this.#core.sender.send(jsonCall('DELETE', this.#path, { isRepeatable: false, signal }))
  }

  override async metrics(
    query: MetricsQuery<BasinMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    const signal = this.#begin(options)
    const { metrics } = await loadAccount()
    return metrics(this.#core.sender, [this.name], query, { signal })
  }

  /** Throws `invalid` for a name that no basin can have. */
  assertName(): void {
    assertValid(basinNameProblem(this.name), 'basin')
  }

  get #path(): string {
    return `/basins/${this.name}`
  }

  #begin(options: CallOptions | undefined, members?: typeof CREATE_OPTIONS): AbortSignal | undefined {
    const signal = members === undefined ? signalOf(options) : signalOf(options, members)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    return signal
  }

  #beginStream(
    name: string,
    options: CallOptions | undefined,
    members?: typeof CREATE_OPTIONS,
  ): AbortSignal | undefined {
    assertText(name, 'stream')
    const signal = this.#begin(options, members)
    assertValid(streamNameProblem(name), 'stream')
    return signal
  }

  /** The configuration with the retention that the library gives to what has none. */
  async withRetention<Config extends StreamReconfiguration>(
    config: Config,
    signal: AbortSignal | undefined,
  ): Promise<Config> {
    if (config.retentionPolicy != null || (await this.#hasRetention(signal)) !== false) return config
    return { ...config, retentionPolicy: 'infinite' }
  }

  /** A change that clears the retention of the basin makes it infinite. */
  async #keepingRetention(
    change: BasinReconfiguration,
    signal: AbortSignal | undefined,
  ): Promise<BasinReconfiguration> {
    const { defaultStreamConfig } = change
    const isCleared = defaultStreamConfig === null || defaultStreamConfig?.retentionPolicy === null
    if (!isCleared || (await this.#hasRetention(signal)) !== true) return change
    const rest = defaultStreamConfig ?? { storageClass: null, timestamping: null, deleteOnEmpty: null }
    return { ...change, defaultStreamConfig: { ...rest, retentionPolicy: 'infinite' } }
  }

  /**
   * Whether the basin has a retention. In the library, records never expire without one; on the wire they do,
   * so it is sent. A token that does not permit looking leaves it to the server: undefined.
   */
  async #hasRetention(signal: AbortSignal | undefined): Promise<boolean | undefined> {
    try {
      return (await this.config({ signal })).defaultStreamConfig.retentionPolicy !== undefined
    } catch (error) {
      if (HeadwaterError.is(error) && error.code === 'permission_denied') return undefined
      throw error
    }
  }
}
