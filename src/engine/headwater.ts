import type { BasinConfig, BasinConfigInput, BasinReconfiguration } from '../model/config.ts'
import type { BasinInfo, ListQuery, Page, Provisioned } from '../model/info.ts'
import { Basin } from './basin.ts'
import type { CreateBasinOptions } from './basins.ts'
import type { EngineServices } from './services.ts'

export interface BasinOptions {
  /** Whether first use of a stream creates it, and its basin; by default as the engine was opened. */
  readonly autoCreate?: boolean
}

/** Counts of what is open, for health pages and for tests that nothing is left behind. */
export interface EngineStats {
  /** Read sessions and long polls. */
  readonly openReads: number
  /** Those of them that wait at the tail for a record. */
  readonly waitingReads: number
  readonly pendingAppends: number
  /** Metered bytes of the appends in flight. */
  readonly appendBytesInFlight: number
  /** Appends that wait for room among them. */
  readonly waitingAppends: number
  readonly cachedStreams: number
}

/** An open engine: all basins of one storage. Made by `open`. */
export class Headwater {
  readonly #services: EngineServices
  readonly #close: () => Promise<void>

  constructor(services: EngineServices, close: () => Promise<void>) {
    this.#services = services
    this.#close = close
  }

  /** Milliseconds since the Unix epoch, by the engine's clock. */
  now(): number {
    return this.#services.engine.settings.clock.now()
  }

  /** Aborts when the engine begins to close. */
  get closing(): AbortSignal {
    return this.#services.engine.closing
  }

  basin(name: string, options: BasinOptions = {}): Basin {
    return new Basin(this.#services, name, options.autoCreate ?? this.#services.engine.settings.autoCreate)
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
    return this.#services.basins.create(name, config, options)
  }

  /** Makes the basin exist with exactly this configuration (wire-behaviour.md 8.3). */
  ensureBasin(
    name: string,
    config: BasinConfigInput = {},
    options: Omit<CreateBasinOptions, 'requestToken'> = {},
  ): Promise<Provisioned<BasinInfo>> {
    return this.#services.basins.ensure(name, config, options)
  }

  listBasins(query: ListQuery = {}): Promise<Page<BasinInfo>> {
    return this.#services.basins.list(query)
  }

  basinConfig(name: string): Promise<BasinConfig> {
    return this.#services.basins.config(name)
  }

  /** Absent keeps, `null` clears, a value sets. Resolves to the whole new configuration. */
  reconfigureBasin(name: string, change: BasinReconfiguration): Promise<BasinConfig> {
    return this.#services.basins.reconfigure(name, change)
  }

  /** Resolves once the deletion is certain. The basin's streams, and then the basin, go in the background. */
  deleteBasin(name: string): Promise<void> {
    return this.#services.basins.delete(name)
  }

  stats(): EngineStats {
    const { logs, appendBudget } = this.#services.engine
    const all = [...logs.all()]
    return {
      openReads: this.#services.reading.open,
      waitingReads: all.reduce((sum, log) => sum + log.live.waiting, 0),
      pendingAppends: all.reduce((sum, log) => sum + log.pendingAppends, 0),
      appendBytesInFlight: appendBudget.used,
      waitingAppends: appendBudget.waiting,
      cachedStreams: all.length,
    }
  }

  /** Ends open sessions with `unavailable`, waits for appends in flight, and closes the storage. A second call waits for the first. */
  close(): Promise<void> {
    return this.#close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
