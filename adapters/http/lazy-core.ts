import type { Engine } from '../../src/index.ts'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { HttpCore } from './core.ts'
import type { RequestExchange } from './exchange.ts'
import { finishReply } from './finish-reply.ts'
import type { HandlerSettings } from './options.ts'
import { errorReply, type Reply } from './reply.ts'
import type { Methods } from './request.ts'
import type { RequestRouter } from './router.ts'

/**
 * Returns a function that opens the engine at its first call, and resolves to the same engine at each further
 * one. The next call tries again if opening failed or the engine was closed, so a failure is not kept: a
 * directory that is still locked by the previous deployment, or a database that is down. Throws `invalid`
 * unless it gets a function.
 *
 * ```ts
 * const engine = openOnce(() => open({ storage: memory() }))
 * const handler = createHandler(engine)
 * const chat = (await engine()).basin('my-app').stream('chat')
 * ```
 */
export function openOnce(openEngine: () => Promise<Engine>): () => Promise<Engine> {
  assertOpens(openEngine, 'openOnce')
  let opened: Promise<Engine> | undefined
  return () => {
    if (opened !== undefined) return opened
    const opening = Promise.resolve().then(openEngine)
    const forget = () => {
      if (opened === opening) opened = undefined
    }
    opened = opening
    opening.then((hw) => onAbort(hw.closing, forget)).catch(forget)
    return opening
  }
}

/** Throws `invalid` unless the value is a function. `name` is that of the function that needs it. */
export function assertOpens(openEngine: unknown, name: string): void {
  if (typeof openEngine === 'function') return
  throw invalid(`${name} needs a function: \`${name}(() => open({ storage }))\``, 'openEngine')
}

/**
 * The protocol over HTTP on an engine that the first request opens. While it cannot be opened, each request
 * tries again, and is rejected with 503 `unavailable` and the reason.
 */
export class LazyHttpCore {
  readonly #open: () => Promise<Engine>
  readonly #settings: HandlerSettings
  readonly #router: RequestRouter<unknown>
  readonly #newCore: (hw: Engine) => HttpCore
  #current: { readonly hw: Engine; readonly core: HttpCore } | undefined

  /** `openEngine` is the result of `openOnce`. */
  constructor(
    openEngine: () => Promise<Engine>,
    settings: HandlerSettings,
    router: RequestRouter<unknown>,
    newCore: (hw: Engine) => HttpCore,
  ) {
    this.#open = openEngine
    this.#settings = settings
    this.#router = router
    this.#newCore = newCore
  }

  /** The engine of the last request; undefined before the first. */
  get engine(): Engine | undefined {
    return this.#current?.hw
  }

  /** Returns whether the path belongs to an endpoint. */
  serves(path: string): boolean {
    return this.#router.match(path, this.#settings.prefix) !== undefined
  }

  /** Never throws or rejects: every failure is a reply. */
  async handle(exchange: RequestExchange): Promise<Reply> {
    let core: HttpCore
    try {
      core = this.#coreOf(await this.#open())
    } catch (cause) {
      this.#settings.onError(cause, exchange)
      // Other messages may contain anything.
      const reason = HeadwaterError.is(cause) ? `: ${cause.message}` : ''
      const error = new HeadwaterError('unavailable', `the streams cannot be opened${reason}`, { cause })
      return finishReply(errorReply(error), exchange, this.#settings)
    }
    return core.handle(exchange)
  }

  #coreOf(hw: Engine): HttpCore {
    const current = this.#current
    if (current !== undefined && current.hw === hw) return current.core
    const core = this.#newCore(hw)
    this.#current = { hw, core }
    return core
  }
}

/** The core on an engine, or on the result of `openOnce`. */
export function coreOf(
  engine: Engine | (() => Promise<Engine>),
  settings: HandlerSettings,
  router: RequestRouter<Methods>,
): HttpCore | LazyHttpCore {
  const newCore = (hw: Engine) => new HttpCore(hw, settings, router)
  return typeof engine === 'function' ? new LazyHttpCore(engine, settings, router, newCore) : newCore(engine)
}
