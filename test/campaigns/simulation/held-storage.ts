import type { Storage, StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import type { EngineClock } from './engine-clock.ts'

export interface Holding {
  readonly calls: HeldCalls
  /** Whether the result of the last call is held as well. */
  readonly holdsAnswer: () => boolean
  /** Called after each call that may have changed something, before its result is delivered. */
  readonly onChange: (operation: string) => Promise<void>
}

const CHANGES: ReadonlySet<string> = new Set(['append', 'commit', 'reclaim'])

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
  #session: HeldSession | undefined

  /** `sharedClock` measures the clock of the storage; undefined if it has none. */
  constructor(inner: Storage, engine: string, holding: Holding, sharedClock: EngineClock | undefined) {
    this.#sharedClock = sharedClock
    this.manifest = inner.manifest
    this.#inner = inner
    this.#engine = engine
    this.#holding = holding
  }

  /** Identifies its calls among the held ones. */
  get session(): object | undefined {
    return this.#session
  }

  async open(context: StorageContext): Promise<StorageSession> {
    this.#session = new HeldSession(
      await this.#inner.open(context),
      this.#engine,
      this.#holding,
      this.#sharedClock,
    )
    return this.#session
  }
}

class HeldSession implements StorageSession {
  readonly #inner: StorageSession
  readonly #engine: string
  readonly #holding: Holding
  #inFlight = 0
  #idle: (() => void) | undefined

  readonly now?: NonNullable<StorageSession['now']>
  readonly clockOffsetMs?: NonNullable<StorageSession['clockOffsetMs']>

  constructor(inner: StorageSession, engine: string, holding: Holding, sharedClock: EngineClock | undefined) {
    if (sharedClock !== undefined) {
      this.now = () => this.#hold('now', async () => sharedClock.measure())
      this.clockOffsetMs = () => sharedClock.correctionMs
    }
    this.#inner = inner
    this.#engine = engine
    this.#holding = holding
  }

  get: StorageSession['get'] = (...args) => this.#hold('get', () => this.#inner.get(...args))
  list: StorageSession['list'] = (...args) => this.#hold('list', () => this.#inner.list(...args))
  commit: StorageSession['commit'] = (...args) => this.#hold('commit', () => this.#inner.commit(...args))
  head: StorageSession['head'] = (...args) => this.#hold('head', () => this.#inner.head(...args))
  read: StorageSession['read'] = (...args) => this.#hold('read', () => this.#inner.read(...args))
  reclaim: StorageSession['reclaim'] = (...args) => this.#hold('reclaim', () => this.#inner.reclaim(...args))
  measure: StorageSession['measure'] = (...args) => this.#hold('measure', () => this.#inner.measure(...args))

  append: StorageSession['append'] = (request) =>
    this.#hold('append', () => this.#inner.append(request), `${this.#engine} ${request.logId}`)

  async close(): Promise<void> {
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
    await this.#inner.close()
  }

  #hold<Answer>(operation: string, call: () => Promise<Answer>, queue?: string): Promise<Answer> {
    const { calls, holdsAnswer, onChange } = this.#holding
    const origin = { session: this, engine: this.#engine, operation, drop: () => this.#done() }
    this.#inFlight++
    return new Promise((resolve, reject) => {
      const run = async () => {
        let answer: () => void
        try {
          const result = await call()
          answer = () => resolve(result)
        } catch (error) {
          answer = () => reject(error)
        }
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
    if (--this.#inFlight === 0) this.#idle?.()
  }
}

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
