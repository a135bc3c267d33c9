import type { Producer } from '../../../../src/index.ts'
import { type AttemptGroup, dataRecord, inputOf } from '../append-attempt.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Violation } from '../violation.ts'
import type { World } from '../world.ts'
import { type Actor, Closings } from './actor.ts'
import type { Appending } from './appending.ts'

const IN_FLIGHT_MAX = 12

interface OpenProducer {
  readonly engine: SimulatedEngine
  readonly stream: string
  readonly producer: Producer
  readonly group: AttemptGroup
  readonly fencingToken: string | undefined
}

/** Appends single records through producers, which collect them into batches. */
export class ProducerWriter implements Actor {
  readonly name: string
  readonly #world: World
  readonly #appending: Appending
  #open: OpenProducer | undefined
  #inFlight = 0
  readonly #closings = new Closings()
  #isFinished = false

  constructor(name: string, world: World, appending: Appending) {
    this.name = name
    this.#world = world
    this.#appending = appending
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#closings.areDone && this.#open === undefined
  }

  act(): void {
    const { scheduler } = this.#world
    if (this.#isFinished) return
    if (this.#open?.engine.isCrashed) this.#open = undefined
    if (this.#open === undefined) this.#openProducer()
    else if (scheduler.chance(0.05)) this.#close()
    else for (let times = 1 + scheduler.below(4); times > 0 && this.#open; times--) this.#submit(this.#open)
  }

  finish(): void {
    this.#isFinished = true
    this.#close()
  }

  #openProducer(): void {
    const { scheduler, open } = this.#world
    if (open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    const { fencingToken } = this.#appending.drawConditions(stream, 0, 0.1)
    const options = {
      lingerMs: scheduler.pick([0, 5, 100]),
      recordsMax: scheduler.pick([1, 3, 1000]),
      fencingToken,
    }
    const producer = engine.stream(stream).producer(options)
    const since = this.#world.sessionsSince(stream)
    this.#open = { engine, stream, producer, group: { attempts: [], since }, fencingToken }
  }

  #submit(open: OpenProducer): void {
    if (this.#inFlight >= IN_FLIGHT_MAX) return
    const { engine, stream, producer, group, fencingToken } = open
    const id = this.#world.nextAttemptId()
    const records = [dataRecord(id, 0, engine.clock.engineTime, 0)]
    const conditions = fencingToken === undefined ? {} : { fencingToken }
    const { attempts } = this.#world.observer
    this.#inFlight++
    this.#appending.begin(
      { actor: this.name, engine, stream, id, records, conditions, group },
      async () => (await producer.submit(inputOf(records[0]!))).ack(),
      ({ seqNum, batch }) => {
        const { timestamp } = attempts.get(id)!.stored?.log.records[seqNum] ?? { timestamp: -1 }
        const isWithin = batch.start.seqNum <= seqNum && seqNum < batch.end.seqNum
        if (!isWithin)
          throw new Violation(`record ${seqNum} is in the batch of its ack`, JSON.stringify(batch))
        return { start: { seqNum, timestamp }, end: { seqNum: seqNum + 1, timestamp }, tail: batch.tail }
      },
      (isAcknowledged) => {
        this.#inFlight--
        if (!isAcknowledged && this.#open === open) this.#close()
      },
    )
  }

  #close(): void {
    const open = this.#open
    this.#open = undefined
    if (open !== undefined) this.#closings.begin(open.engine, () => open.producer.close())
  }
}
