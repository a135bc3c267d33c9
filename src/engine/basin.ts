import type { StreamConfig, StreamConfigInput, StreamReconfiguration } from '../model/config.ts'
import type { ListQuery, Page, Provisioned, StreamInfo } from '../model/info.ts'
import type { StreamRef } from './context.ts'
import type { EngineServices } from './services.ts'
import { Stream, type StreamOptions } from './stream.ts'

/** A basin by name: costs nothing to make. Calls fail with `basin_not_found` (404) or `basin_deletion_pending` (409). */
export class Basin {
  readonly name: string
  readonly #services: EngineServices
  readonly #autoCreate: boolean

  constructor(services: EngineServices, name: string, autoCreate: boolean) {
    this.#services = services
    this.name = name
    this.#autoCreate = autoCreate
  }

  stream(name: string, options: StreamOptions = {}): Stream {
    const creation = { always: this.#autoCreate, config: options.config }
    return new Stream(this.#services, this.#ref(name), creation)
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
    return this.#services.streams.create(this.#ref(name), config, options.requestToken)
  }

  /** Makes the stream exist with exactly this configuration over the basin's defaults (wire-behaviour.md 8.3). */
  ensureStream(name: string, config: StreamConfigInput = {}): Promise<Provisioned<StreamInfo>> {
    return this.#services.streams.ensure(this.#ref(name), config)
  }

  listStreams(query: ListQuery = {}): Promise<Page<StreamInfo>> {
    return this.#services.streams.list(this.name, query)
  }

  streamConfig(name: string): Promise<StreamConfig> {
    return this.#services.streams.config(this.#ref(name))
  }

  /** Absent keeps, `null` returns to the basin's default, a value sets. Resolves to the whole new configuration. */
  reconfigureStream(name: string, change: StreamReconfiguration): Promise<StreamConfig> {
    return this.#services.streams.reconfigure(this.#ref(name), change)
  }

  /** The stream and its records are gone when this resolves; open sessions end with `unavailable`. */
  deleteStream(name: string): Promise<void> {
    return this.#services.streams.delete(this.#ref(name))
  }

  #ref(stream: string): StreamRef {
    return { basin: this.name, stream }
  }
}
