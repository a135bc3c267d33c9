import { HeadwaterError } from '../model/errors.ts'
import { Late } from './late.ts'
import type { Settings } from './options.ts'
import type { Rest } from './rest.ts'

/** When code that could not be had is asked for again, in milliseconds. */
const RETRY_MS = 60_000
/** How long an engine that closes waits for the code of what it still has to tell, in milliseconds. */
const CLOSING_MS = 5_000
/** How much is kept to be told: an engine that is used for long without the code must not fill the memory. */
const UNTOLD_MAX = 100_000

type Message = (rest: Rest) => void

/** The {@link Rest} of an engine. It is loaded once the engine is open; what it is told before is kept for it. */
export class LateRest {
  readonly #settings: Settings
  readonly #closing: AbortSignal
  readonly #late: Late<Rest>
  #rest: Rest | undefined
  #untold: Message[] = []
  #isLosing = false
  #creating = 0
  #cancelRetry: (() => void) | undefined
  /** It is not to begin any more. */
  #gone = false

  constructor(settings: Settings, closing: AbortSignal, load: () => Promise<Rest>) {
    this.#settings = settings
    this.#closing = closing
    // Drawn now: what comes of a seed must not depend on how long the code takes.
    const chance = settings.random()
    this.#late = new Late('part of headwater', async () => this.#begin(await load(), chance))
  }

  /** Loads it now, and again every minute while it cannot be had. Resolves when the first attempt is over. */
  async start(): Promise<void> {
    await this.#late.load().catch((error: unknown) => {
      if (this.#closing.aborted) return
      this.#settings.onBackgroundError(error)
      this.#cancelRetry = this.#settings.clock.schedule(RETRY_MS, () => void this.start(), {
        background: true,
      })
    })
  }

  /** Calls it with the rest: now, or in the order of the calls as soon as it is there. */
  tell(message: Message): void {
    if (this.#rest !== undefined) message(this.#rest)
    else if (this.#untold.length < UNTOLD_MAX) this.#untold.push(message)
    else this.#lose()
  }

  /** Rejects with `unavailable` when it cannot be had, after which the next call tries again, and when the engine closes. */
  load(): Promise<Rest> {
    return this.#late.load(this.#closing)
  }

  /** The same for a call that may create something: see {@link creationsBegan}. */
  async loadToCreate(): Promise<Rest> {
    this.#creating++
    try {
      return await this.load()
    } finally {
      this.#creating--
    }
  }

  /** Resolves when no call that may create something waits to begin: at once as a rule. */
  async creationsBegan(): Promise<void> {
    if (this.#creating > 0) await this.load().catch(() => {})
  }

  async close(): Promise<void> {
    this.#cancelRetry?.()
    if (this.#untold.length > 0) await this.#awaitCode()
    this.#gone = true
    await this.#rest?.close()
  }

  async #awaitCode(): Promise<void> {
    const { clock, onBackgroundError } = this.#settings
    const late = new AbortController()
    const cancel = clock.schedule(CLOSING_MS, () => late.abort(lost('had not come when the engine closed')))
    try {
      await this.#late.load(late.signal)
    } catch (error) {
      onBackgroundError(error)
    } finally {
      cancel()
    }
  }

  #lose(): void {
    if (this.#isLosing) return
    this.#isLosing = true
    this.#settings.onBackgroundError(lost('does not come'))
  }

  #begin(rest: Rest, chance: number): Rest {
    if (this.#gone) throw this.#closing.reason
    for (const message of this.#untold) {
      try {
        message(rest)
      } catch (error) {
        this.#settings.onBackgroundError(error)
      }
    }
    this.#untold = []
    this.#rest = rest
    if (!this.#closing.aborted) rest.start(chance)
    return rest
  }
}

function lost(why: string): HeadwaterError {
  return new HeadwaterError('unavailable', `usage is not counted: the code for it ${why}`)
}
