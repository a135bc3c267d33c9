import { type FaultyStorage, faultyStorage } from '../../../adapters/testing/index.ts'
import { type Engine, open, type Stream } from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { storageFaultsAtRandom } from '../../support/random-faults.ts'
import { EngineClock } from '../harness/engine-clock.ts'
import { Violation } from '../harness/violation.ts'
import { HeldStorage } from './held-storage.ts'
import { ratesOf } from './settings.ts'
import type { World } from './world.ts'

/** The outcome of a call of an engine: exactly one of the three. */
export interface Call<Result> {
  readonly done: (result: Result) => void
  readonly failed: (error: unknown) => void
  /** The engine died before the call settled. */
  readonly lost: () => void
}

interface EngineParts {
  readonly clock: EngineClock
  readonly hw: Engine
  readonly faulty: FaultyStorage
  readonly held: HeldStorage
}

/** An engine from its opening to its end, and its pending calls. */
export class SimulatedEngine {
  readonly name: string
  readonly clock: EngineClock
  readonly hw: Engine
  readonly #world: World
  readonly #faulty: FaultyStorage
  readonly #held: HeldStorage
  readonly #waiting = new Set<() => void>()
  #state: 'open' | 'closing' | 'closed' | 'dead' = 'open'

  private constructor(world: World, name: string, parts: EngineParts) {
    this.name = name
    this.clock = parts.clock
    this.hw = parts.hw
    this.#world = world
    this.#faulty = parts.faulty
    this.#held = parts.held
  }

  static async open(world: World, name: string, storage: Storage): Promise<SimulatedEngine> {
    const { settings, prng } = world
    const { notifications } = settings
    const skewMs = settings.skewMs === 0 ? 0 : prng.below(2 * settings.skewMs + 1) - settings.skewMs
    const clock = new EngineClock(world.time, skewMs, world.usesSharedClock)
    const held = new HeldStorage(storage, name, world.holding, world.usesSharedClock ? clock : undefined)
    const faulty = faultyStorage(held, { notifications })
    // A generator of its own, so that draws of the engine do not affect those of the scheduler.
    const random = new Prng(prng.below(2 ** 31))
    const hw = await open({
      storage: faulty,
      clock,
      random: () => random.next(),
      limits: settings.limits,
      autoCreate: settings.autoCreate,
      trimGraceMs: settings.trimGraceMs,
    })
    const engine = new SimulatedEngine(world, name, { clock, hw, faulty, held })
    if (world.mayFail) engine.startFaults()
    return engine
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get hasEnded(): boolean {
    return this.#state === 'closed' || this.#state === 'dead'
  }

  get isCrashed(): boolean {
    return this.#state === 'dead'
  }

  get waiting(): number {
    return this.#waiting.size
  }

  stream(name: string): Stream {
    return this.#world.streamOf(this.hw.basin(this.#world.basin).stream(name))
  }

  call<Result>(promise: Promise<Result>, call: Call<Result>): void {
    const settled = (callback: () => void) => {
      if (!this.#waiting.delete(call.lost)) return
      this.#world.guard(callback)
    }
    this.#waiting.add(call.lost)
    promise.then(
      (result) => settled(() => call.done(result)),
      (error: unknown) => settled(() => call.failed(error)),
    )
  }

  close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    const closed = () => {
      if (this.#state !== 'closing') return
      this.#state = 'closed'
      this.#world.note(this.name, 'closed')
      if (this.clock.armed > 0) throw new Violation('a closed engine has no timers', `${this.clock.armed}`)
    }
    const guarded = () => this.#world.guard(closed)
    const failed = (error: unknown) =>
      this.#world.guard(() => {
        throw new Violation('an engine closes, whatever fails', String(error))
      })
    this.hw.close().then(guarded, failed)
  }

  /**
   * Simulates the end of the process. Each call in flight takes effect or never will; on a shared storage, it
   * may take effect later.
   */
  async crash(): Promise<void> {
    if (this.hasEnded) return
    const { calls, prng, settings } = this.#world
    this.#state = 'dead'
    this.clock.stop()
    const crashed = this.#faulty.crash()
    const delayed = new Set<string | undefined>()
    for (const call of calls.of(this.#held.session!)) {
      const outcome = call.phase === 'answer' ? 'lost' : prng.pick(['lost', 'made', 'later'] as const)
      if (outcome === 'lost') calls.drop(call)
      // Calls after a late call of the same lane are late too.
      else if (settings.isShared && (outcome === 'later' || delayed.has(call.queue)))
        delayed.add(call.queue ?? '')
      else await calls.release(call)
    }
    // Discards the results of these calls.
    for (const call of calls.of(this.#held.session!)) if (call.phase === 'answer') calls.drop(call)
    if (!settings.isShared) await crashed
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const lost of waiting) this.#world.guard(lost)
  }

  /** Enables random failures of its storage. */
  startFaults(): void {
    storageFaultsAtRandom(this.#faulty, this.#world.prng.below(2 ** 31), ratesOf(this.#world.settings))
  }

  loseConnection(): void {
    this.#faulty.loseConnection()
  }

  restore(): void {
    this.#faulty.restore()
  }

  conflictNext(): void {
    this.#faulty.failNext('commit', { kind: 'conflict' })
  }

  heal(): void {
    this.clock.leap(0)
    this.#faulty.heal()
  }
}
