import { inputOf } from '../append-attempt.ts'
import { drawBatch } from '../drawing.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'
import type { Appending } from './appending.ts'

const IN_FLIGHT_MAX = 4

/** Appends batches, awaited or not, with all kinds of conditions, including fences and trims. */
export class Writer implements Actor {
  readonly name: string
  readonly #world: World
  readonly #appending: Appending
  /** Its appends through one engine to one stream keep their order. */
  readonly #callers = new Map<string, object>()
  #inFlight = 0
  #number = 0
  #isFinished = false

  constructor(name: string, world: World, appending: Appending) {
    this.name = name
    this.#world = world
    this.#appending = appending
  }

  get isIdle(): boolean {
    return this.#inFlight === 0
  }

  act(): void {
    const { scheduler, open, settings } = this.#world
    if (this.#isFinished || this.#inFlight >= IN_FLIGHT_MAX || open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const id = this.#world.nextAttemptId()
    const tail = this.#appending.knownState(stream).tail(scheduler)
    const records = drawBatch({
      prng: scheduler,
      id,
      now: engine.clock.engineTime,
      tail,
      largeBodies: settings.largeBodies,
    })
    const conditions = this.#appending.drawConditions(stream, 0.3, 0.25)
    const turn = { caller: this.#caller(engine.name), number: this.#number++ }
    this.#inFlight++
    this.#appending.begin(
      { actor: this.name, engine, stream, id, records, conditions, turn },
      () => engine.stream(stream).append(records.map(inputOf), conditions),
      (ack) => ack,
      () => {
        this.#inFlight--
      },
    )
  }

  finish(): void {
    this.#isFinished = true
  }

  #caller(engine: string): object {
    const caller = this.#callers.get(engine) ?? {}
    this.#callers.set(engine, caller)
    return caller
  }
}
