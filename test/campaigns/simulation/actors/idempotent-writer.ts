import type { AppendConditions } from '../../../../src/model/append-input.ts'
import { closeOf, inputOf, type SentRecord } from '../append-attempt.ts'
import { drawBatch } from '../drawing.ts'
import type { ProducerBatches } from '../producer-batches.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'
import type { Appending } from './appending.ts'

const IN_FLIGHT_MAX = 3
/** Few, so that writers share producers. */
const IDS = ['p', 'p', 'q']

/**
 * Appends the batches of idempotent producers through any engine: the next one, one again, with a gap, or in
 * another epoch.
 */
export class IdempotentWriter implements Actor {
  readonly name: string
  readonly #world: World
  readonly #appending: Appending
  readonly #batches: ProducerBatches
  #inFlight = 0
  #isFinished = false

  constructor(name: string, world: World, appending: Appending, batches: ProducerBatches) {
    this.name = name
    this.#world = world
    this.#appending = appending
    this.#batches = batches
  }

  get isIdle(): boolean {
    return this.#inFlight === 0
  }

  act(): void {
    const { scheduler, open } = this.#world
    if (this.#isFinished || this.#inFlight >= IN_FLIGHT_MAX || open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const producer = this.#batches.draw(scheduler, stream, scheduler.pick(IDS))
    const known = this.#batches.known(stream, producer)
    const id = known?.id ?? this.#world.nextAttemptId()
    const records = known?.records ?? this.#drawRecords(stream, id, engine.clock.engineTime)
    const conditions: AppendConditions = known?.conditions ?? {
      producer,
      ...this.#appending.drawConditions(stream, 0.08, 0.08),
    }
    this.#inFlight++
    const attempt = this.#appending.begin(
      { actor: this.name, engine, stream, id, records, conditions, repeated: known },
      () => engine.stream(stream).append(records.map(inputOf), conditions),
      (ack) => ack,
      (isAcknowledged, error) => {
        this.#inFlight--
        if (isAcknowledged) this.#batches.acknowledged(stream, producer)
        else if (error !== undefined) this.#batches.rejected(stream, producer, error)
      },
    )
    this.#batches.add(stream, producer, attempt)
  }

  finish(): void {
    this.#isFinished = true
  }

  #drawRecords(stream: string, id: string, now: number): readonly SentRecord[] {
    const { scheduler, settings } = this.#world
    const tail = this.#appending.knownState(stream).tail(scheduler)
    const records = drawBatch({ prng: scheduler, id, now, tail, largeBodies: settings.largeBodies })
    return settings.closes && scheduler.chance(0.02) ? [...records, closeOf(now)] : records
  }
}
