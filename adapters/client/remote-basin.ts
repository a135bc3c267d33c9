import { Basin, type CreateStreamOptions } from '../../src/api/basin.ts'
import { type CallOptions, STREAM_OPTIONS, type StreamOptions } from '../../src/api/call-options.ts'
import {
  assertBasinConfig,
  type BasinConfig,
  type BasinReconfiguration,
  type StreamConfigInput,
} from '../../src/model/config.ts'
import { assertValid } from '../../src/model/errors.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../../src/model/info.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, streamPrefixProblem } from '../../src/model/names.ts'
import { assertMembers, notText } from '../../src/model/validation.ts'
import { basinChangeText, basinConfigOf } from '../../src/wire/json-config.ts'
import { STREAM_PAGE } from '../../src/wire/json-resources.ts'
import { jsonCall } from './call.ts'
import type { ClientCore } from './core.ts'
import { basinConfig, createStream, ensureStream, withKeptRetention } from './creation.ts'
import { RemoteStream } from './remote-stream.ts'
import { RemoteTarget } from './stream-target.ts'
import { begin, listSearch, metricsFor } from './unary-calls.ts'

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
    return new RemoteStream(this.#core, new RemoteTarget([this.name, name], options, this.#autoCreate))
  }

  override createStream(
    name: string,
    ...args: [config?: StreamConfigInput, options?: CreateStreamOptions]
  ): Promise<Provisioned<StreamInfo>> {
    const names = [this.name, name] as const
    return this.#core.inOrder(this.#order(name), () => createStream(this.#core.sender, names, ...args))
  }

  override ensureStream(
    name: string,
    ...args: [config?: StreamConfigInput, options?: CallOptions]
  ): Promise<Provisioned<StreamInfo>> {
    const names = [this.name, name] as const
    return this.#core.inOrder(this.#order(name), () => ensureStream(this.#core.sender, names, ...args))
  }

  override async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    const { sender } = this.#core
    const signal = begin(sender, options)
    const search = listSearch(query, streamPrefixProblem)
    assertValid(basinNameProblem(this.name), 'basin')
    const call = jsonCall('GET', `/streams${search}`, { basin: this.name, signal })
    return sender.json(call, STREAM_PAGE.of)
  }

  override async storedConfig(options?: CallOptions): Promise<BasinConfig> {
    return basinConfig(this.#core.sender, this.name, options)
  }

  override async reconfigureStored(
    change: BasinReconfiguration,
    options?: CallOptions,
  ): Promise<BasinConfig> {
    const { sender } = this.#core
    const signal = begin(sender, options, [this.name])
    assertBasinConfig(change)
    const text = basinChangeText(withKeptRetention(sender, change))
    const call = jsonCall('PATCH', `/basins/${this.name}`, { text, signal })
    return sender.json(call, basinConfigOf)
  }

  /** Is not repeated after an unknown outcome: another basin may have the name by then. */
  override async delete(options?: CallOptions): Promise<void> {
    const { sender } = this.#core
    const signal = begin(sender, options, [this.name])
    await sender.send(jsonCall('DELETE', `/basins/${this.name}`, { isRepeatable: false, signal }))
  }

  override async metrics(query: MetricsQuery, options?: CallOptions): Promise<readonly Metric[]> {
    return metricsFor(this.#core.sender, [this.name], query, options)
  }

  /** The place of a creation among other calls. The name is not checked yet: it may be a symbol. */
  #order(name: string): readonly [basin: string, stream: string] {
    return [this.name, String(name)]
  }
}
