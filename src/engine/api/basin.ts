import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../../model/config.ts'
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
import { RedactedKey } from '../../model/redacted-key.ts'
import { assertMembers, type MembersOf, notText } from '../../model/validation.ts'
import { unlessAborted } from '../../runtime/abort.ts'
import type { Permit } from '../service/permit.ts'
import type { RestoredStream } from '../service/stream-service.ts'
import { CALL_OPTIONS, type CallOptions, signalOf } from './call-options.ts'
import type { AlternativeOperations, Caller } from './caller.ts'
import type { Engine } from './engine.ts'
import { type ListAllQuery, listAll } from './list-all.ts'
import { STREAM_OPTIONS, Stream, type StreamOptions } from './stream.ts'

/** Options of `createStream`. */
export interface CreateStreamOptions extends CallOptions {
  /** Makes a repeated creation with the same configuration a `noop` instead of an error. At most 36 bytes. */
  readonly requestToken?: string | undefined
}

const CREATE_STREAM_OPTIONS: MembersOf<CreateStreamOptions> = { ...CALL_OPTIONS, requestToken: 'string' }

const ENSURE_STREAM: AlternativeOperations<Provisioned<StreamInfo>> = {
  anyOf: ['create-stream', 'reconfigure-stream'],
  counted: ({ result }) => (result === 'created' ? 'create-stream' : 'reconfigure-stream'),
}

/**
 * A handle of a basin, made by `hw.basin(name)`. It costs nothing.
 *
 * Errors of all methods: `basin_not_found`, `basin_deletion_pending`, `invalid` for malformed input,
 * `storage`, `transaction_conflict` when other engines kept changing the same object first, `unavailable`
 * once the engine is closed, and for holders of access tokens `authn` and `permission_denied`.
 */
export class Basin {
  /** The name of the basin. */
  readonly name: string
  readonly #engine: Engine
  readonly #caller: Caller
  readonly #autoCreate: boolean

  /** @internal */
  constructor(engine: Engine, caller: Caller, name: string, autoCreate: boolean) {
    this.#engine = engine
    this.#caller = caller
    this.name = name
    this.#autoCreate = autoCreate
  }

  /**
   * Returns a handle of a stream (name: 1 to 512 bytes), whether it exists or not. Throws `invalid` for a
   * name that is not a string, and for malformed options.
   */
  stream(name: string, options: StreamOptions = {}): Stream {
    if (typeof name !== 'string') throw notText('stream')
    assertMembers(options, STREAM_OPTIONS, 'options')
    const { config, encryptionKey } = options
    return new Stream(this.#engine, this.#caller, {
      ref: { basin: this.name, stream: name },
      creation: { always: this.#autoCreate, config },
      key: encryptionKey === undefined ? undefined : new RedactedKey(encryptionKey),
      connection: this.#caller.connection,
    })
  }

  /**
   * Creates a stream. Rejects with `resource_already_exists` if it exists, unless the request token shows
   * that the call is a repetition.
   */
  async createStream(
    name: string,
    config: StreamConfigInput = {},
    options: CreateStreamOptions = {},
  ): Promise<Provisioned<StreamInfo>> {
    const ref = this.#ref(name)
    return this.#caller.run(
      'create-stream',
      ref,
      options,
      async (permit) =>
        shown(
          permit,
          await this.#engine.streams.create(permit.resolveRef(ref), config, options.requestToken),
        ),
      CREATE_STREAM_OPTIONS,
    )
  }

  /**
   * Makes the stream exist with exactly this configuration over the basin's defaults: creates it, changes it,
   * or does nothing.
   */
  async ensureStream(
    name: string,
    config: StreamConfigInput = {},
    options?: CallOptions,
  ): Promise<Provisioned<StreamInfo>> {
    const ref = this.#ref(name)
    return this.#caller.run(ENSURE_STREAM, ref, options, async (permit) => {
      const provisioned = await this.#engine.streams.ensure(permit.resolveRef(ref), config, (change) => {
        permit.authorize([change === 'create' ? 'create-stream' : 'reconfigure-stream'], ref)
      })
      return shown(permit, provisioned)
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
  async restoreStream(name: string, restored: RestoredStream, options?: CallOptions): Promise<StreamInfo> {
    this.#caller.assertOwner()
    const signal = signalOf(options)
    signal?.throwIfAborted()
    return unlessAborted(signal, this.#engine.streams.restore(this.#ref(name), restored))
  }

  /** Lists streams in the order of the UTF-8 bytes of their names, at most 1,000 per page. */
  async listStreams(query: ListQuery = {}, options?: CallOptions): Promise<Page<StreamInfo>> {
    assertMembers(query, LIST_QUERY, 'query')
    return this.#caller.run('list-streams', { basin: this.name }, options, async (permit) => {
      const page = await permit.list(
        'streams',
        query,
        (scoped) => this.#engine.streams.list(this.name, scoped),
        ({ name }) => name,
      )
      // A missing basin is reported even to a caller that may see none of its streams.
      if (page === undefined) {
        await this.#engine.streams.list(this.name, { ...query, limit: 1 })
        return EMPTY_PAGE
      }
      return { ...page, items: page.items.map((info) => shownInfo(permit, info)) }
    })
  }

  /** Iterates over all streams, one page at a time. */
  listAllStreams(
    query: ListAllQuery = {},
    options?: CallOptions,
  ): AsyncGenerator<StreamInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listStreams(page, options),
      ({ name }) => name,
    )
  }

  /** Resolves to the configuration of a stream. Rejects with `stream_not_found`. */
  async streamConfig(name: string, options?: CallOptions): Promise<StreamConfig> {
    const ref = this.#ref(name)
    return this.#caller.run('get-stream-config', ref, options, async (permit) =>
      this.#engine.streams.config(permit.resolveRef(ref)),
    )
  }

  /**
   * Changes the configuration of a stream: an absent member keeps its value, `null` returns it to the basin's
   * default. Resolves to the whole new configuration. Rejects with `stream_not_found`.
   */
  async reconfigureStream(
    name: string,
    change: StreamReconfiguration,
    options?: CallOptions,
  ): Promise<StreamConfig> {
    const ref = this.#ref(name)
    return this.#caller.run('reconfigure-stream', ref, options, async (permit) =>
      this.#engine.streams.reconfigure(permit.resolveRef(ref), change),
    )
  }

  /**
   * Deletes a stream. When the promise resolves, the stream and its records no longer exist; open sessions
   * end with `unavailable`. Rejects with `stream_not_found`.
   */
  async deleteStream(name: string, options?: CallOptions): Promise<void> {
    const ref = this.#ref(name)
    return this.#caller.run('delete-stream', ref, options, async (permit) =>
      this.#engine.streams.delete(permit.resolveRef(ref)),
    )
  }

  /**
   * Resolves to usage metrics of the basin (docs/protocol.md "Usage metrics"). Rejects with `unavailable`
   * unless the engine meters usage.
   */
  async metrics(query: MetricsQuery<BasinMetricSet>, options?: CallOptions): Promise<readonly Metric[]> {
    return this.#caller.run('basin-metrics', { basin: this.name }, options, () =>
      this.#engine.usage.metrics.basin(this.name, query),
    )
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
