import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../model/config.ts'
import { GivenKey } from '../model/given-key.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../model/info.ts'
import type { BasinMetricSet, Metric, MetricsQuery } from '../model/metrics.ts'
import type { StreamRef } from './context.ts'
import type { RestoredStream } from './control/restored-stream.ts'
import { permissionDenied } from './errors.ts'
import { Stream, type StreamOptions } from './stream.ts'
import type { EngineView } from './view.ts'

/** A basin by name: costs nothing to make. Calls fail with `basin_not_found` (404) or `basin_deletion_pending` (409). */
export class Basin {
  readonly name: string
  readonly #view: EngineView
  readonly #autoCreate: boolean

  constructor(view: EngineView, name: string, autoCreate: boolean) {
    this.#view = view
    this.name = name
    this.#autoCreate = autoCreate
  }

  stream(name: string, options: StreamOptions = {}): Stream {
    const { config, encryptionKey } = options
    return new Stream(this.#view, {
      ref: this.#ref(name),
      creation: { always: this.#autoCreate, config },
      key: encryptionKey === undefined ? undefined : new GivenKey(encryptionKey),
      connection: this.#view.connection,
    })
  }

  /**
   * Creates a stream (name: 1 to 512 bytes). With a request token a repetition is a `noop`; else an existing stream is
   * `resource_already_exists` (409). wire-behaviour.md 8.2.
   */
  createStream(
    name: string,
    config: StreamConfigInput = {},
    options: { readonly requestToken?: string | undefined } = {},
  ): Promise<Provisioned<StreamInfo>> {
    return this.#view.streams.create(this.#ref(name), config, options.requestToken)
  }

  /** Makes the stream exist with exactly this configuration over the basin's defaults (wire-behaviour.md 8.3). */
  ensureStream(name: string, config: StreamConfigInput = {}): Promise<Provisioned<StreamInfo>> {
    return this.#view.streams.ensure(this.#ref(name), config)
  }

  /**
   * Creates a stream that goes on where another one was: its first record gets the sequence number `start.seqNum`, no record gets a timestamp below
   * `start.timestamp`, and everything before counts as trimmed. For what copies streams. An existing stream is `resource_already_exists` (409), also when it
   * is empty; numbers beyond 2^53 - 1, fencing tokens of more than 36 bytes and unknown ciphers are `invalid` (422). For the owner alone.
   */
  async restoreStream(name: string, restored: RestoredStream): Promise<StreamInfo> {
    if (this.#view.owner === undefined) throw permissionDenied()
    return this.#view.owner.restoreStream(this.#ref(name), restored)
  }

  listStreams(query: ListQuery = {}): Promise<Page<StreamInfo>> {
    return this.#view.streams.list(this.name, query)
  }

  streamConfig(name: string): Promise<StreamConfig> {
    return this.#view.streams.config(this.#ref(name))
  }

  /** Absent keeps, `null` returns to the basin's default, a value sets. Resolves to the whole new configuration. */
  reconfigureStream(name: string, change: StreamReconfiguration): Promise<StreamConfig> {
    return this.#view.streams.reconfigure(this.#ref(name), change)
  }

  /** The stream and its records are gone when this resolves; open sessions end with `unavailable`. */
  deleteStream(name: string): Promise<void> {
    return this.#view.streams.delete(this.#ref(name))
  }

  /** Usage of the basin (service-interface.md "Basin-level metrics"); `start` and `end` are required. Errors: `invalid`. */
  metrics(query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    return this.#view.metrics.basin(this.name, query)
  }

  #ref(stream: string): StreamRef {
    return { basin: this.name, stream }
  }
}
