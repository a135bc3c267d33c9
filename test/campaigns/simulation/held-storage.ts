import type { Storage, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import type { EngineClock } from '../harness/engine-clock.ts'

export interface Holding {
  readonly calls: HeldCalls
  /** Whether the result of the last call is held as well. */
  readonly holdsAnswer: () => boolean
  /** Called after each call that may have changed something, before its result is delivered. */
  readonly onChange: (operation: string) => Promise<void>
}

const CHANGES: ReadonlySet<string> = new Set(['append', 'commit', 'reclaim'])

/** A storage call, or its result, that waits until the scheduler releases it. */
interface HeldCall {
  readonly session: object
  readonly engine: string
  readonly operation: string
  readonly phase: 'call' | 'answer'
  /** Calls of one queue are released in order: the appends of one engine to one log. */
  readonly queue: string | undefined
  run(): Promise<void>
  /** Discards the call. */
  drop(): void
}

/**
 * Holds every call of one engine, and results, until the scheduler releases them: the scheduler determines
 * the order of events.
 */
export class HeldStorage implements Storage {
  readonly manifest: Storage['manifest']
  readonly #inner: Storage
  readonly #engine: string
  readonly #holding: Holding
  readonly #sharedClock: EngineClock | undefined
  #inFlight = 0
  #onIdle: (() => void) | undefined
  /** Identifies its calls among the held ones. */
  session: StorageSession | undefined

  /** `sharedClock` measures the clock of the storage; undefined if it has none. */
  constructor(inner: Storage, engine: string, holding: Holding, sharedClock: EngineClock | undefined) {
    this.manifest = inner.manifest
    this.#inner = inner
    this.#engine = engine
    this.#holding = holding
    this.#sharedClock = sharedClock
  }

  async open(context: StorageContext): Promise<StorageSession> {
    const inner = await this.#inner.open(context)
    const clock = this.#sharedClock
    const held: StorageSession = {
      get: (...args) => this.#hold('get', () => inner.get(...args)),
      list: (...args) => this.#hold('list', () => inner.list(...args)),
      commit: (...args) => this.#hold('commit', () => inner.commit(...args)),
      head: (...args) => this.#hold('head', () => inner.head(...args)),
      read: (...args) => this.#hold('read', () => inner.read(...args)),
      reclaim: (...args) => this.#hold('reclaim', () => inner.reclaim(...args)),
      measure: (...args) => this.#hold('measure', () => inner.measure(...args)),
      append: (request) =>
        this.#hold('append', () => inner.append(request), `${this.#engine} ${request.logId}`),
      close: async () => {
        if (this.#inFlight > 0) {
          await new Promise<void>((resolve) => {
            this.#onIdle = resolve
          })
        }
        await inner.close()
      },
      ...(clock !== undefined && {
        now: () => this.#hold('now', async () => clock.measure()),
        clockOffsetMs: () => clock.correctionMs,
      }),
    }
    this.session = held
    return held
  }

  #hold<Answer>(operation: string, call: () => Promise<Answer>, queue?: string): Promise<Answer> {
    const { calls, holdsAnswer, onChange } = this.#holding
    const origin = { session: this.session!, engine: this.#engine, operation, drop: () => this.#done() }
    this.#inFlight++
    return new Promise((resolve, reject) => {
      const run = async () => {
        const answer = await call().then(
          (result) => () => resolve(result),
          (error: unknown) => () => reject(error),
        )
        if (CHANGES.has(operation)) await onChange(operation)
        const settle = async () => {
          answer()
          this.#done()
        }
        if (holdsAnswer()) calls.hold({ ...origin, phase: 'answer', queue: undefined, run: settle })
        else await settle()
      }
      calls.hold({ ...origin, phase: 'call', queue, run })
    })
  }

  #done(): void {
    if (--this.#inFlight === 0) this.#onIdle?.()
  }
}

/** All held calls of all engines, in the order of their arrival. */
export class HeldCalls {
  #calls: HeldCall[] = []

  hold(call: HeldCall): void {
    this.#calls.push(call)
  }

  /** The calls that may be released next. */
  get ready(): readonly HeldCall[] {
    const queues = new Set<string>()
    return this.#calls.filter(({ queue }) => {
      if (queue === undefined) return true
      const isFirst = !queues.has(queue)
      queues.add(queue)
      return isFirst
    })
  }

  of(session: object): readonly HeldCall[] {
    return this.#calls.filter((call) => call.session === session)
  }

  async release(call: HeldCall): Promise<void> {
    this.#remove(call)
    await call.run()
  }

  drop(call: HeldCall): void {
    this.#remove(call)
    call.drop()
  }

  #remove(call: HeldCall): void {
    this.#calls = this.#calls.filter((other) => other !== call)
  }
}
