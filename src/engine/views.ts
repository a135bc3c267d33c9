import type { Access } from './access/index.ts'
import type { Connection, EngineContext } from './context.ts'
import { deferred, once } from './deferred.ts'
import type { Late } from './late.ts'
import type { CallerServices } from './services.ts'
import type { EngineView } from './view.ts'

/** Who calls, for `Headwater.view`. */
export interface ViewOptions {
  /** An access token, or whatever somebody presents as one, undefined included. Left out: the same caller as before. */
  readonly token?: string | undefined
  /** An object that stands for the caller's connection: the usage metrics count appends by it. */
  readonly connection?: Connection | undefined
}

/** Makes the views of an engine. The gate before a token's holder is loaded when its first holder calls: many a page has none. */
export class Views {
  readonly owner: EngineView
  readonly #services: CallerServices
  readonly #access: () => Promise<Access>

  constructor(engine: EngineContext, services: CallerServices, access: Late<Access>) {
    this.#services = services
    this.#access = () => access.load(engine.closing)
    this.owner = {
      ...services,
      engine,
      connection: {},
      check: async () => {},
      owner: {
        createRootToken: async () => (await this.#access()).tokens.createRoot(),
        setRootToken: async (token) => (await this.#access()).tokens.setRoot(token),
        restoreStream: async (ref, restored) =>
          (await engine.rest.loadToCreate()).streams.restore(ref, restored),
      },
    }
  }

  of(options: ViewOptions, previous: EngineView): EngineView {
    const { connection = {} } = options
    if (!('token' in options)) return { ...previous, connection }
    // Nothing presented is not the owner.
    const token = options.token ?? ''
    const gated = once(async () => (await this.#access()).servicesFor(token, this.#services))
    return {
      engine: previous.engine,
      connection,
      owner: undefined,
      basins: deferred(async () => (await gated()).basins),
      streams: deferred(async () => (await gated()).streams),
      records: deferred(async () => (await gated()).records),
      tokens: deferred(async () => (await gated()).tokens),
      metrics: deferred(async () => (await gated()).metrics),
      locations: deferred(async () => (await gated()).locations),
      check: async (operations, resource) => (await gated()).check(operations, resource),
    }
  }
}
