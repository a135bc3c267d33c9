import type { AppendConditions } from '../../../../src/model/append-input.ts'
import {
  type AppendAttempt,
  closeId,
  closeOf,
  dataRecord,
  inputOf,
  type SentRecord,
} from '../append-attempt.ts'
import { drawBatch } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { AppendingActor, type AppendRequest } from './appending-actor.ts'

/** Appends batches with single calls, awaited or not. */
abstract class BatchWriter extends AppendingActor {
  protected readonly inFlightMax: number = 4

  protected appendBatch(
    engine: SimulatedEngine,
    stream: string,
    conditions: AppendConditions,
    options: Pick<AppendRequest, 'turn' | 'repeated'> = {},
  ): void {
    const { prng, settings } = this.world
    const { repeated } = options
    const id = repeated?.id ?? this.world.nextAttemptId()
    const draw = (): readonly SentRecord[] => {
      const records = drawBatch(this.world, this.beliefs.tail(prng, stream), id, engine.clock.engineTime)
      const closes = conditions.producer !== undefined && settings.closes && prng.chance(0.02)
      return closes ? [...records, closeOf(engine.clock.engineTime)] : records
    }
    const records = repeated?.records ?? draw()
    this.append({ engine, stream, id, records, conditions, ...options }, () =>
      engine.stream(stream).append(records.map(inputOf), conditions),
    )
  }
}

/** Appends with all kinds of conditions, including fences and trims. */
export class Writer extends BatchWriter {
  /** Its appends through one engine to one stream keep their order. */
  readonly #callers = new Map<SimulatedEngine, object>()
  #number = 0

  protected begin(engine: SimulatedEngine): void {
    const { prng, settings } = this.world
    const stream = this.world.pickStream()
    const streamSeqs = settings.streamSeqs ? 0.15 : 0
    const conditions = this.beliefs.conditions(prng, stream, { matches: 0.3, fences: 0.25, streamSeqs })
    const caller = this.#callers.get(engine) ?? {}
    this.#callers.set(engine, caller)
    this.appendBatch(engine, stream, conditions, { turn: { caller, number: this.#number++ } })
  }
}

/** Few, so that writers share producers. */
const PRODUCERS = ['p', 'p', 'q']

/**
 * Appends the batches of idempotent producers through any engine: the next one, one again, with a gap, or in
 * another epoch.
 */
export class IdempotentWriter extends BatchWriter {
  protected begin(engine: SimulatedEngine): void {
    const { prng } = this.world
    const stream = this.world.pickStream()
    const producer = this.beliefs.batch(prng, stream, prng.pick(PRODUCERS))
    const repeated = this.beliefs.earlier(stream, producer)
    const drawn = this.beliefs.conditions(prng, stream, { matches: 0.08, fences: 0.08 })
    this.appendBatch(engine, stream, repeated?.conditions ?? { ...drawn, producer }, { repeated })
  }
}

/** Closes streams now and then, with or without last records, and some of them again. */
export class Closer extends AppendingActor {
  protected readonly inFlightMax = 1

  protected begin(engine: SimulatedEngine): void {
    const { prng, observer } = this.world
    if (!prng.chance(0.04)) return
    const stream = this.world.pickStream()
    const now = prng.chance(0.5) ? engine.clock.engineTime : undefined
    const isBare = !mayBeStored(observer.attempts.get(closeId(stream))) && prng.chance(0.6)
    const id = isBare ? closeId(stream) : this.world.nextAttemptId()
    const records = [...(isBare ? [] : [dataRecord(id, 0, now)]), closeOf(now)]
    const conditions = this.beliefs.conditions(prng, stream, { matches: 0.15, fences: 0.15 })
    this.note(isBare ? 'close' : 'close with records', { stream })
    this.append({ engine, stream, id, records, conditions }, () =>
      isBare && now === undefined
        ? engine.stream(stream).close(conditions)
        : engine.stream(stream).append(records.map(inputOf), conditions),
    )
  }
}

function mayBeStored(attempt: AppendAttempt | undefined): boolean {
  return attempt?.status === 'pending' || attempt?.status === 'unknown'
}

/** Appends one record to each stream at the end of a run. */
export class LastWriter extends AppendingActor {
  protected readonly inFlightMax = Number.POSITIVE_INFINITY

  protected begin(engine: SimulatedEngine): void {
    for (const stream of this.world.streams) {
      const id = this.world.nextAttemptId()
      const records = [dataRecord(id, 0, engine.clock.engineTime)]
      this.append({ engine, stream, id, records, conditions: {} }, () =>
        engine.stream(stream).append(records.map(inputOf)),
      )
    }
  }
}
