import '../loaded-code.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { openCountsOf } from '../../support/open-counts.ts'
import type { Actor } from './actors/actor.ts'
import { Appending } from './actors/appending.ts'
import { Controller } from './actors/controller.ts'
import { Follower } from './actors/follower.ts'
import { ProducerWriter } from './actors/producer-writer.ts'
import { Reader } from './actors/reader.ts'
import { SessionWriter } from './actors/session-writer.ts'
import { Writer } from './actors/writer.ts'
import { dataRecord, inputOf } from './append-attempt.ts'
import { EngineFaults } from './engine-faults.ts'
import { type Settings, settingsOf } from './settings.ts'
import { Violation } from './violation.ts'
import { type Sabotage, World } from './world.ts'

export interface RunOptions {
  readonly seed: number
  readonly steps: number
  readonly sabotage?: Sabotage
}

export interface RunResult {
  readonly seed: number
  /** The number of steps made; fewer than requested if a violation was found. */
  readonly steps: number
  readonly settings: Settings
  readonly violation: Violation | undefined
  /** Found after the last step, while everything was brought to an end. */
  readonly isAtEnd: boolean
  readonly lines: readonly string[]
  readonly digest: string
}

/**
 * The number of turns of the event loop that let everything run that waits for neither a storage nor a clock.
 */
const TURNS = 3
const SETTLING_ROUNDS_MIN = 16
const SETTLING_ROUNDS_MAX = 64
const FULL_LOOK_EVERY = 32

/** Plays a seed. The same seed and number of steps result in the same history. */
export async function run({ seed, steps, sabotage }: RunOptions): Promise<RunResult> {
  const settings = settingsOf(new Prng(seed))
  // Not the generator of the settings, so that an additional setting does not change the run.
  const world = await World.create(settings, new Prng(seed ^ 0x5eed_5eed), sabotage)
  const simulation = new Simulation(world)
  let step = 0
  await world.guardAsync(() => simulation.begin())
  while (step < steps && world.violation === undefined) {
    world.history.beginStep(++step)
    await world.guardAsync(() => simulation.step(step))
  }
  const isAtEnd = world.violation === undefined
  if (isAtEnd) await world.guardAsync(() => simulation.end(step))
  await simulation.dispose()
  const { violation, history } = world
  return { seed, steps: step, settings, violation, isAtEnd, lines: history.lines, digest: history.digest }
}

class Simulation {
  readonly #world: World
  readonly #actors: readonly Actor[]
  readonly #appending: Appending
  readonly #engineFaults: EngineFaults

  constructor(world: World) {
    const { writers, sessionWriters, producers, followers, readers, controllers } = world.settings
    const appending = new Appending(world)
    this.#appending = appending
    const many = (count: number, name: string, create: (name: string) => Actor) =>
      Array.from({ length: count }, (_, index) => create(`${name}${index + 1}`))
    this.#world = world
    this.#engineFaults = new EngineFaults(world)
    this.#actors = [
      ...many(writers, 'writer', (name) => new Writer(name, world, appending)),
      ...many(sessionWriters, 'session', (name) => new SessionWriter(name, world, appending)),
      ...many(producers, 'producer', (name) => new ProducerWriter(name, world, appending)),
      ...many(followers, 'follower', (name) => new Follower(name, world)),
      ...many(readers, 'reader', (name) => new Reader(name, world)),
      ...many(controllers, 'controller', (name) => new Controller(name, world)),
    ]
  }

  async begin(): Promise<void> {
    const { basin, settings } = this.#world
    const { hw } = await this.#world.openEngine()
    const isReady = hw
      .ensureBasin(basin, { defaultStreamConfig: settings.config })
      .then(() => Promise.all(settings.streams.map((name) => hw.basin(basin).ensureStream(name))))
    let isDone = false
    isReady.then(() => {
      isDone = true
    })
    while (!isDone) await this.#releaseAll()
    while (this.#world.open.length < settings.engines) await this.#world.openEngine()
    this.#world.isFaultFree = false
    if (this.#world.mayFail) for (const engine of this.#world.engines) engine.startFaults()
  }

  async step(step: number): Promise<void> {
    const { scheduler, calls, settings, observer } = this.#world
    const { ready } = calls
    const choice = scheduler.next() * (1 + settings.workPerCall)
    if (choice < settings.workPerCall) scheduler.pick(this.#actors).act()
    else if (choice < settings.workPerCall + 0.04) await this.#advanceTime()
    else if (choice < settings.workPerCall + 0.06) await this.#engineFaults.act()
    else if (ready.length > 0) await this.#release(ready)
    else scheduler.pick(this.#actors).act()
    await this.#settle()
    if (step % FULL_LOOK_EVERY === 0)
      for (const history of observer.histories.values()) await observer.recheck(history)
  }

  /**
   * Ends a run without further failures: every actor must become idle, and the stored state must be
   * consistent.
   */
  async end(steps: number): Promise<void> {
    const world = this.#world
    world.isFaultFree = true
    world.history.add('clock', 'all faults end', { latestTime: world.latestTime })
    for (const engine of world.engines) engine.heal()
    for (const actor of this.#actors) actor.finish()
    // Calls that were in flight before may still fail.
    await this.#releaseAll()
    // On an exclusive storage, an engine may learn the outcome of an earlier append only from its next one.
    if (world.open.length > 0) for (const stream of world.settings.streams) this.#appendLast(stream)
    // A follower reads one batch a round, and there are at most as many batches as steps.
    const roundsMax = SETTLING_ROUNDS_MAX + steps
    for (let round = 0; ; round++) {
      for (const actor of this.#actors) actor.act()
      await this.#releaseAll()
      this.#stopAtViolation()
      if (round >= SETTLING_ROUNDS_MIN && this.#isIdle()) break
      if (round > roundsMax) throw new Violation('no actor waits forever', this.#waiting())
      // Engines poll if they are not notified of changes.
      await world.time.advance(round % 8 === 7 ? '61s' : '500ms')
    }
    for (const actor of this.#actors) if (actor instanceof Follower) actor.leave()
    await this.#releaseAll()
    for (const { name, hw } of world.open) {
      const held = openCountsOf(hw)
      if (Object.values(held).some((count) => count > 0))
        throw new Violation('an idle engine holds nothing', `${name}: ${JSON.stringify(held)}`)
    }
    await this.#closeAll()
    for (const history of world.observer.histories.values()) await world.observer.recheck(history)
    for (const engine of world.engines) {
      if (engine.waiting > 0)
        throw new Violation('every call settles', `${engine.waiting} of ${engine.name} do not`)
    }
    if (world.time.pending > 0) throw new Violation('no timer is left', `${world.time.pending}`)
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

  #appendLast(stream: string): void {
    const { open, scheduler } = this.#world
    const engine = scheduler.pick(open)
    const id = this.#world.nextAttemptId()
    const records = [dataRecord(id, 0, engine.clock.engineTime, 0)]
    this.#appending.begin(
      { actor: 'last', engine, stream, id, records, conditions: {} },
      () => engine.stream(stream).append(records.map(inputOf)),
      (ack) => ack,
      () => {},
    )
  }

  async #closeAll(): Promise<void> {
    const world = this.#world
    for (const engine of world.engines) engine.close()
    for (let round = 0; world.engines.some(({ hasEnded }) => !hasEnded); round++) {
      if (round > SETTLING_ROUNDS_MAX) throw new Violation('engines close', 'one does not')
      await this.#releaseAll()
      await world.time.advance('500ms')
      this.#stopAtViolation()
    }
    await this.#releaseAll()
  }

  #isIdle(): boolean {
    const { calls } = this.#world
    return calls.ready.length === 0 && this.#actors.every(({ isIdle }) => isIdle)
  }

  #waiting(): string {
    return (
      this.#actors
        .filter(({ isIdle }) => !isIdle)
        .map(({ name }) => name)
        .join(', ') || 'the storage'
    )
  }

  #stopAtViolation(): void {
    if (this.#world.violation !== undefined) throw this.#world.violation
  }

  async #release(ready: ReturnType<() => World['calls']['ready']>): Promise<void> {
    const { scheduler, calls, history } = this.#world
    // Sometimes the oldest one, because it might wait forever otherwise.
    const call = scheduler.chance(0.3) ? ready[0]! : scheduler.pick(ready)
    history.add(call.engine, call.phase, { operation: call.operation })
    await calls.release(call)
  }

  async #releaseAll(): Promise<void> {
    await this.#settle()
    for (let rounds = 0; rounds < SETTLING_ROUNDS_MAX; rounds++) {
      const { ready } = this.#world.calls
      if (ready.length === 0) return
      await this.#release(ready)
      await this.#settle()
    }
  }

  async #advanceTime(): Promise<void> {
    const { scheduler, time, history, latestTime } = this.#world
    const ms = scheduler.chance(0.7)
      ? scheduler.below(200)
      : scheduler.chance(0.8)
        ? scheduler.below(12_000)
        : 61_000 + scheduler.below(60_000)
    history.add('clock', 'advance', { ms, latestTime })
    await time.advance(ms)
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) await macrotask()
  }
}
