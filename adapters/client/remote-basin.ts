import { Basin, CREATE_STREAM_OPTIONS, type CreateStreamOptions } from '../../src/api/basin.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { STREAM_OPTIONS, type StreamOptions } from '../../src/api/stream-options.ts'
import type { BasinConfig, BasinReconfiguration, StreamConfigInput } from '../../src/model/config.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../src/model/info.ts'
import type { BasinMetricSet, Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { STREAM_CREATION, type StreamCreation } from '../../src/model/stream-creation.ts'
import { assertMembers, assertText, type Members, notText } from '../../src/model/validation.ts'
import type { ClientCore } from './core.ts'
import { jsonCall } from './json-call.ts'
import { loadAccount, loadControl } from './on-demand.ts'
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
    options: CreateStreamOptions = {},
  ): Promise<Provisioned<StreamInfo>> {
    const signal = this.#beginStream(name, options, CREATE_STREAM_OPTIONS)
    for (const member of Object.keys(STREAM_CREATION) as (keyof StreamCreation)[]) {
      if (options[member] === undefined) continue
      const message = `\`${member}\` is not part of the wire protocol: create the stream in the server's process`
      throw new HeadwaterError('unsupported', message, { field: member })
    }
    const { createStream } = await loadControl()
    const { requestToken } = options
    return createStream(this.#core.sender, this.name, name, config, { requestToken, signal })
  }

  override async ensureStream(
    name: string,
    config: StreamConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<StreamInfo>> {
    const signal = this.#beginStream(name, options)
    const { ensureStream } = await loadControl()
    return ensureStream(this.#core.sender, this.name, name, config, signal)
  }

  override async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    const signal = this.#begin(options)
    const { listStreams } = await loadControl()
    return listStreams(this.#core.sender, this.name, query, signal, () => this.assertName())
  }

  override async storedConfig(options?: CallOptions): Promise<BasinConfig> {
    const signal = this.#begin(options)
    this.assertName()
    const { basinConfig } = await loadControl()
    return basinConfig(this.#core.sender, this.name, signal)
  }

  override async reconfigureStored(
    change: BasinReconfiguration,
    options?: CallOptions,
  ): Promise<BasinConfig> {
    const signal = this.#begin(options)
    this.assertName()
    const { reconfigureBasin } = await loadControl()
    return reconfigureBasin(this.#core.sender, this.name, change, signal)
  }

  override async delete(options?: CallOptions): Promise<void> {
    const signal = this.#begin(options)
    this.assertName()
    // Not repeated after an unknown outcome: another basin may have the name by then.
    await this.#core.sender.send(jsonCall('DELETE', `/basins/${this.name}`, { isRepeatable: false, signal }))
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

  #begin(options: CallOptions | undefined, members?: Members): AbortSignal | undefined {
    const signal = members === undefined ? signalOf(options) : signalOf(options, members)
    signal?.throwIfAborted()
    this.#core.closing.throwIfAborted()
    return signal
  }

  #beginStream(name: string, options: CallOptions | undefined, members?: Members): AbortSignal | undefined {
    assertText(name, 'stream')
    const signal = this.#begin(options, members)
    assertValid(streamNameProblem(name), 'stream')
    this.assertName()
    return signal
  }
}
