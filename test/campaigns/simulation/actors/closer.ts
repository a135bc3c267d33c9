import { closeId, closeOf, dataRecord, inputOf } from '../append-attempt.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'
import type { Appending } from './appending.ts'

const PROBABILITY = 0.04

/** Closes streams now and then, with or without last records, and some of them again. */
export class Closer implements Actor {
  readonly name: string
  readonly #world: World
  readonly #appending: Appending
  #inFlight = 0
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
    const { scheduler, open, observer } = this.#world
    if (this.#isFinished || this.#inFlight > 0 || open.length === 0 || !scheduler.chance(PROBABILITY)) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const now = scheduler.chance(0.5) ? engine.clock.engineTime : undefined
    const earlier = observer.attempts.get(closeId(stream))
    const mayBeStored = earlier?.status === 'pending' || earlier?.status === 'unknown'
    const isBare = !mayBeStored && scheduler.chance(0.6)
    const id = isBare ? closeId(stream) : this.#world.nextAttemptId()
    const records = [...(isBare ? [] : [dataRecord(id, 0, now, 0)]), closeOf(now)]
    const conditions = this.#appending.drawConditions(stream, 0.15, 0.15)
    this.#inFlight++
    this.#world.history.add(this.name, isBare ? 'close' : 'close with records', { stream })
    this.#appending.begin(
      { actor: this.name, engine, stream, id, records, conditions },
      () =>
        isBare && now === undefined
          ? engine.stream(stream).close(conditions)
          : engine.stream(stream).append(records.map(inputOf), conditions),
      (ack) => ack,
      () => {
        this.#inFlight--
      },
    )
  }

  finish(): void {
    this.#isFinished = true
  }
}
