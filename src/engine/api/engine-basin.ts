import { Basin, CREATE_STREAM_OPTIONS, type CreateStreamOptions } from '../../api/basin.ts'
import { type CallOptions, STREAM_OPTIONS, type StreamOptions } from '../../api/call-options.ts'
import type { Operation } from '../../model/access.ts'
import {
  type AppendBatch,
  appendBatch,
  largeAppendBatch,
  type RecordInput,
} from '../../model/append-input.ts'
import type { BasinConfig, BasinReconfiguration, StreamConfigInput } from '../../model/config.ts'
import { EncryptionKey } from '../../model/encryption-key.ts'
import {
  EMPTY_PAGE,
  LIST_QUERY,
  type ListQuery,
  type Page,
  type Provisioned,
  type StreamInfo,
} from '../../model/info.ts'
import type { BasinMetricSet, Metric, MetricsQuery } from '../../model/metrics.ts'
import type { StreamRef } from '../../model/names.ts'
import { assertMembers, assertText, ownCopy } from '../../model/validation.ts'
import type { AlternativeOperations, Caller, Permit } from '../access/caller.ts'
import type { StreamTarget } from '../streams/table.ts'
import type { EngineServices } from './engine-services.ts'
import { EngineStream } from './engine-stream.ts'

const ENSURE_STREAM: AlternativeOperations<Provisioned<StreamInfo>> = {
  anyOf: ['create-stream', 'reconfigure-stream'],
  counted: ({ result }) => (result === 'created' ? 'create-stream' : 'reconfigure-stream'),
}

/** A basin of an engine. */
export class EngineBasin extends Basin {
  readonly #services: EngineServices
  readonly #caller: Caller
  readonly #autoCreate: boolean

  /** @internal */
  constructor(services: EngineServices, caller: Caller, name: string, autoCreate: boolean) {
    super(name)
    this.#services = services
    this.#caller = caller
    this.#autoCreate = autoCreate
  }

  override stream(name: string, options: StreamOptions = {}): EngineStream {
    assertText(name, 'stream')
    assertMembers(options, STREAM_OPTIONS, 'options')
    return new EngineStream(this.#services, this.#caller, this.#ref(name), this.#autoCreate, options)
  }

  override createStream(
    name: string,
    config: StreamConfigInput = {},
    options: CreateStreamOptions = {},
  ): Promise<Provisioned<StreamInfo>> {
    return this.#createStream(name, config, options, appendBatch)
  }

  /**
   * @internal Creates a stream whose first records may exceed the limits of a batch
   * (`LARGE_APPEND_BYTES_MAX`), for other protocols.
   */
  createLargeStream(
    name: string,
    config: StreamConfigInput,
    options: CreateStreamOptions,
  ): Promise<Provisioned<StreamInfo>> {
    return this.#createStream(name, config, options, largeAppendBatch)
  }

  async #createStream(
    name: string,
    config: StreamConfigInput,
    options: CreateStreamOptions,
    batchOf: (records: readonly RecordInput[]) => AppendBatch,
  ): Promise<Provisioned<StreamInfo>> {
    assertMembers(options, CREATE_STREAM_OPTIONS, 'options')
    const { records, encryptionKey, signal, requestToken, metadata, expiry, fork } = options
    const ref = this.#ref(name)
    const own = ownCopy({ config, request: { requestToken, metadata, expiry, fork } })
    const batch = records && batchOf(records)
    const key = encryptionKey === undefined ? undefined : new EncryptionKey(encryptionKey)
    // First records occupy memory as an append does.
    const reservation = batch && this.#services.admission.reserve(batch.meteredBytes)
    const creating = this.#caller.run('create-stream', ref, { signal }, async (permit) => {
      const from = own.request.fork
      const source = from && { target: this.#sourceOf(permit, from.stream, key), seqNum: from.seqNum }
      if (batch !== undefined) {
        permit.authorize(['append'], ref)
        permit.authorizeCommands(ref, batch)
      }
      const content = source || batch ? { fork: source, records: batch, key } : undefined
      const created = await this.#services.streams.create(
        permit.resolveRef(ref),
        own.config,
        own.request,
        this.#caller.defaultRetention,
        content,
      )
      return shown(permit, created)
    })
    return creating.finally(() => reservation?.release())
  }

  #sourceOf(permit: Permit, stream: string, key: EncryptionKey | undefined): StreamTarget {
    assertText(stream, 'fork.stream')
    const source = this.#ref(stream)
    permit.authorize(['read'], source)
    const creation = { always: false, never: true }
    const { connection } = this.#caller
    return { ref: permit.resolveRef(source), creation, key, connection }
  }

  override async ensureStream(
    name: string,
    config: StreamConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<StreamInfo>> {
    const ref = this.#ref(name)
    const own = ownCopy(config)
    return this.#caller.run(ENSURE_STREAM, ref, options, async (permit) => {
      const { defaultRetention } = this.#caller
      const resolved = permit.resolveRef(ref)
      const provisioned = await this.#services.streams.ensure(resolved, own, defaultRetention, (change) => {
        permit.authorize([change === 'create' ? 'create-stream' : 'reconfigure-stream'], ref)
      })
      return shown(permit, provisioned)
    })
  }

  override async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#run('list-streams', options, async (permit) => {
      const page = await permit.list('streams', query, (scoped) =>
        this.#services.streams.list(this.name, scoped),
      )
      // A missing basin is reported even to a caller that may see none of its streams.
      if (page === EMPTY_PAGE) await this.#services.streams.list(this.name, { ...query, limit: 1 })
      return { ...page, items: page.items.map((info) => shownInfo(permit, info)) }
    })
  }

  override async config(options?: CallOptions): Promise<BasinConfig> {
    return this.#run('get-basin-config', options, () => this.#services.basins.config(this.name))
  }

  override async reconfigure(change: BasinReconfiguration, options?: CallOptions): Promise<BasinConfig> {
    const own = ownCopy(change)
    return this.#run('reconfigure-basin', options, () =>
      this.#services.basins.reconfigure(this.name, own, this.#caller.defaultRetention),
    )
  }

  override async delete(options?: CallOptions): Promise<void> {
    return this.#run('delete-basin', options, () => this.#services.basins.delete(this.name))
  }

  override async metrics(
    query: MetricsQuery<BasinMetricSet>,
    options?: CallOptions,
  ): Promise<readonly Metric[]> {
    return this.#run('basin-metrics', options, () => this.#services.usage.metrics.basin(this.name, query))
  }

  #run<Result>(
    operation: Operation,
    options: CallOptions | undefined,
    call: (permit: Permit) => Promise<Result>,
  ): Promise<Result> {
    return this.#caller.run(operation, { basin: this.name }, options, call)
  }

  #ref(stream: string): StreamRef {
    return { basin: this.name, stream }
  }
}

function shown(permit: Permit, { result, info }: Provisioned<StreamInfo>): Provisioned<StreamInfo> {
  return { result, info: shownInfo(permit, info) }
}

/** The info as the caller names the stream. */
function shownInfo(permit: Permit, info: StreamInfo): StreamInfo {
  return { ...info, name: permit.shownName(info.name) }
}
