import { macrotask } from '../../../src/runtime/macrotask.ts'
import { openCountsOf } from '../../support/open-counts.ts'
import type { Played, PlayOptions, Scenario } from '../harness/scheduler.ts'
import type { SeedCampaign } from '../harness/seeds.ts'
import { Violation } from '../harness/violation.ts'
import type { Actor } from './actors/actor.ts'
import { Beliefs } from './actors/beliefs.ts'
import { Controller } from './actors/controller.ts'
import { Creator } from './actors/creator.ts'
import { Follower } from './actors/follower.ts'
import { ProducerWriter, SessionWriter } from './actors/pipelining.ts'
import { Reader } from './actors/reader.ts'
import { Closer, IdempotentWriter, LastWriter, Writer } from './actors/writers.ts'
import { checkOverdue } from './checks/check-removal.ts'
import { type Sabotage, World } from './world.ts'

export const SIMULATION: SeedCampaign = {
  name: 'sim',
  steps: 400,
  regressions: [339, 569, 843, 4018, 5138, 5182, 20238],
  play,
}

/** The turns of the event loop that let everything run that waits for neither a storage nor a clock. */
const TURNS = 3
const SETTLING_ROUNDS_MIN = 16
const SETTLING_ROUNDS_MAX = 64
const FULL_LOOK_EVERY = 32
const CLOCK_STEPS_MS = [-5_000, -50, 50, 5_000]
const YEAR_MS = 365 * 86_400_000
const CLOCK_LEAPS_MS = [-YEAR_MS, 0, YEAR_MS]

/** Plays a seed. The same seed and number of steps result in the same history. */
export async function play(options: PlayOptions, sabotage: Sabotage = {}): Promise<Played> {
  const world = await World.create(options, sabotage)
  return world.play(new Simulation(world), options, world.settings)
}

class Simulation implements Scenario {
  readonly #world: World
  readonly #actors: readonly Actor[]
  readonly #lastWriter: LastWriter

  constructor(world: World) {
    this.#world = world
    const { settings } = world
    const beliefs = new Beliefs()
    type ActorClass = new (name: string, world: World, beliefs: Beliefs) => Actor
    const actors: readonly (readonly [number, string, ActorClass])[] = [
      [settings.writers, 'writer', Writer],
      [settings.sessionWriters, 'session', SessionWriter],
      [settings.producers, 'producer', ProducerWriter],
      [settings.followers, 'follower', Follower],
      [settings.readers, 'reader', Reader],
      [settings.controllers, 'controller', Controller],
      [settings.idempotentWriters, 'idempotent', IdempotentWriter],
      [settings.closes ? 1 : 0, 'closer', Closer],
      [settings.created.length > 0 ? 1 : 0, 'creator', Creator],
    ]
    this.#actors = actors.flatMap(([count, name, Class]) =>
      Array.from({ length: count }, (_, index) => new Class(`${name}${index + 1}`, world, beliefs)),
    )
    this.#lastWriter = new LastWriter('last', world, beliefs)
  }

  async begin(): Promise<void> {
    const world = this.#world
    const { basin, settings } = world
    await world.openEngine()
    const { hw } = world.engines[0]!
    let isReady = false
    const create = async () => {
      await hw.ensureBasin(basin, { defaultStreamConfig: settings.config })
      await Promise.all(settings.streams.map((name) => hw.basin(basin).ensureStream(name)))
      isReady = true
    }
    const creating = create()
    while (!isReady) await this.#releaseAll()
    await creating
    while (world.open.length < settings.engines) await world.openEngine()
    world.isFaultFree = false
    if (world.mayFail) for (const engine of world.engines) engine.startFaults()
  }

  async step(step: number): Promise<void> {
    const world = this.#world
    const { workPerCall } = world.settings
    const act = () => world.prng.pick(this.#actors).act()
    await world.choose([
      [workPerCall, act],
      [0.04, () => this.#advanceTime()],
      [0.02, () => this.#changeEngines()],
      [0.94, () => (world.calls.ready.length > 0 ? this.#release() : act())],
    ])
    await this.#settle()
    if (step % FULL_LOOK_EVERY === 0) await world.observer.recheck()
  }

  /**
   * Ends a run without further failures: every actor must become idle, and the stored state must be
   * consistent.
   */
  async end(steps: number): Promise<void> {
    const world = this.#world
    world.isFaultFree = true
    world.note('clock', 'all faults end', { latestTime: world.latestTime })
    for (const engine of world.engines) engine.heal()
    for (const actor of this.#actors) actor.finish()
    // Calls that were in flight before may still fail.
    await this.#releaseAll()
    // On an exclusive storage, an engine may learn the outcome of an earlier append only from its next one.
    this.#lastWriter.act()
    // A follower reads one batch a round, and there are at most as many batches as steps.
    const roundsMax = SETTLING_ROUNDS_MAX + steps
    for (let round = 0; ; round++) {
      for (const actor of this.#actors) actor.act()
      await this.#releaseAll()
      if (world.violation !== undefined) return
      if (round >= SETTLING_ROUNDS_MIN && this.#isIdle()) break
      if (round > roundsMax) throw new Violation('no actor waits forever', this.#waiting())
      // Engines poll if they are not notified of changes.
      await world.time.advance(round % 8 === 7 ? '61s' : '500ms')
    }
    await this.#checkEnd()
  }

  /** Releases everything, whatever was found. */
  async dispose(): Promise<void> {
    for (const engine of this.#world.engines) {
      engine.clock.stop()
      const crash = engine.crash()
      for (const call of this.#world.calls.ready) this.#world.calls.drop(call)
      await Promise.race([crash, macrotask()])
    }
  }

  async #checkEnd(): Promise<void> {
    const world = this.#world
    this.#checkOverdue()
    for (const actor of this.#actors) if (actor instanceof Follower) actor.leave()
    await this.#releaseAll()
    for (const { name, hw } of world.open) {
      const held = openCountsOf(hw)
      if (Object.values(held).some((count) => count > 0))
        throw new Violation('an idle engine holds nothing', `${name}: ${JSON.stringify(held)}`)
    }
    for (const engine of world.engines) engine.close()
    for (let round = 0; world.engines.some(({ hasEnded }) => !hasEnded); round++) {
      if (round > SETTLING_ROUNDS_MAX) throw new Violation('engines close', 'one does not')
      await this.#releaseAll()
      await world.time.advance('500ms')
    }
    await this.#releaseAll()
    await world.observer.recheck()
    for (const { name, waiting } of world.engines)
      if (waiting > 0) throw new Violation('every call settles', `${waiting} of ${name} do not`)
    if (world.time.pending > 0) throw new Violation('no timer is left', `${world.time.pending}`)
  }

  #checkOverdue(): void {
    const { observer, open, settings } = this.#world
    // A time that has leapt is used for deletions only after it was confirmed.
    if (open.length === 0 || settings.clockLeaps) return
    const earliest = Math.min(...open.map(({ clock }) => clock.deletionTime))
    for (const history of observer.histories.values()) checkOverdue(history, earliest)
  }

  #isIdle(): boolean {
    const { calls } = this.#world
    return calls.ready.length === 0 && this.#busy().length === 0
  }

  #busy(): readonly Actor[] {
    return [...this.#actors, this.#lastWriter].filter(({ isIdle }) => !isIdle)
  }

  #waiting(): string {
    const names = this.#busy().map(({ name }) => name)
    return names.join(', ') || 'the storage'
  }

  async #release(): Promise<void> {
    const { prng, calls } = this.#world
    const { ready } = calls
    // Sometimes the oldest one, because it might wait forever otherwise.
    const call = prng.chance(0.3) ? ready[0]! : prng.pick(ready)
    this.#world.note(call.engine, call.phase, { operation: call.operation })
    await calls.release(call)
  }

  async #releaseAll(): Promise<void> {
    await this.#settle()
    for (let round = 0; round < SETTLING_ROUNDS_MAX && this.#world.calls.ready.length > 0; round++) {
      await this.#release()
      await this.#settle()
    }
  }

  async #advanceTime(): Promise<void> {
    const { prng, time, latestTime } = this.#world
    const long = () => (prng.chance(0.8) ? prng.below(12_000) : 61_000 + prng.below(60_000))
    const ms = prng.chance(0.7) ? prng.below(200) : long()
    this.#world.note('clock', 'advance', { ms, latestTime })
    await time.advance(ms)
  }

  /** Engines crash, are closed and opened, lose their connection, and their clocks are set. */
  async #changeEngines(): Promise<void> {
    const world = this.#world
    const { prng, settings, engines, open } = world
    const running = engines.filter(({ hasEnded }) => !hasEnded)
    if (open.length < settings.engines && (settings.isShared || running.length === 0)) {
      await world.openEngine()
      return
    }
    const engine = prng.pick(running)
    const setClock = (event: string, offsets: readonly number[], set: (ms: number) => void) => {
      const ms = prng.pick(offsets)
      world.note(engine.name, event, { ms, latestTime: world.latestTime })
      set(ms)
    }
    const change = (event: string, act: () => unknown) => () => {
      world.note(engine.name, event, { latestTime: world.latestTime })
      return act()
    }
    const faults = settings.faultRate > 0 ? 1 : 0
    await world.choose([
      [
        settings.clockSteps ? 0.3 : 0,
        () => setClock('clock is set', CLOCK_STEPS_MS, (ms) => engine.clock.step(ms)),
      ],
      [
        settings.clockLeaps ? 0.2 : 0,
        () => setClock('clock leaps', CLOCK_LEAPS_MS, (ms) => engine.clock.leap(ms)),
      ],
      [0.1, change('closes', () => engine.close())],
      [0.2 * faults, change('crashes', () => engine.crash())],
      [0.1 * faults, change('loses its connection', () => engine.loseConnection())],
      [0.2 * faults, change('is reconnected', () => engine.restore())],
      [0.05 * faults, change('gets a conflict next', () => engine.conflictNext())],
    ])
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await macrotask()
  }
}
