import type { AppendConditions } from '../../../../src/model/append-input.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import { Violation } from '../../harness/violation.ts'
import { type AttemptGroup, dataRecord, inputOf, type SentRecord } from '../append-attempt.ts'
import { drawBatch } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { AppendingActor } from './appending-actor.ts'

/** An append session or a producer. */
interface Pipeline {
  readonly engine: SimulatedEngine
  readonly stream: string
  readonly group: AttemptGroup
  readonly submit: (id: string) => {
    readonly records: readonly SentRecord[]
    readonly conditions: AppendConditions
    readonly append: () => Promise<AppendAck>
  }
  readonly close: () => Promise<unknown>
}

/** Appends several batches at a time in order. A failure ends the pipeline, and another one is opened. */
abstract class PipeliningActor extends AppendingActor {
  #pipeline: Pipeline | undefined

  override get isIdle(): boolean {
    return super.isIdle && this.#pipeline === undefined
  }

  protected begin(engine: SimulatedEngine): void {
    const { prng } = this.world
    if (this.#pipeline?.engine.isCrashed) this.#pipeline = undefined
    if (this.#pipeline === undefined) {
      // It may be open soon.
      if (this.inFlight === 0) this.open(engine, this.world.pickStream())
      return
    }
    if (prng.chance(0.07)) this.#close()
    else
      for (let times = prng.pick([1, 1, 3]); times > 0 && this.#pipeline; times--)
        this.#submit(this.#pipeline)
  }

  override finish(): void {
    super.finish()
    this.#close()
  }

  protected abstract open(engine: SimulatedEngine, stream: string): void

  protected opened(pipeline: Omit<Pipeline, 'group'>): void {
    const { settings, observer } = this.world
    const since = settings.isShared ? 0 : observer.history(pipeline.stream).observed.records
    this.#pipeline = { ...pipeline, group: { attempts: [], since } }
    if (this.isFinished) this.#close()
  }

  #submit(pipeline: Pipeline): void {
    const { engine, stream, group } = pipeline
    const id = this.world.nextAttemptId()
    const { records, conditions, append } = pipeline.submit(id)
    this.append(
      { engine, stream, id, records, conditions, group, ordersAcks: true },
      append,
      (isAcknowledged) => {
        if (!isAcknowledged && this.#pipeline === pipeline) this.#close()
      },
    )
  }

  /** Pipelines of a dead engine are not closed. */
  #close(): void {
    const pipeline = this.#pipeline
    this.#pipeline = undefined
    if (pipeline === undefined || pipeline.engine.isCrashed) return
    this.inFlight++
    const done = () => {
      this.inFlight--
    }
    pipeline.engine.call(pipeline.close(), { done, failed: done, lost: done })
  }
}

/** Appends through sessions. */
export class SessionWriter extends PipeliningActor {
  protected readonly inFlightMax = 6

  protected open(engine: SimulatedEngine, stream: string): void {
    const { prng, observer } = this.world
    this.call({
      engine,
      history: observer.history(stream),
      event: 'open session',
      promise: engine.stream(stream).appendSession(),
      done: (session) =>
        this.opened({
          engine,
          stream,
          submit: (id) => {
            const now = engine.clock.engineTime
            const records = drawBatch(this.world, this.beliefs.tail(prng, stream), id, now)
            const conditions = this.beliefs.conditions(prng, stream, { matches: 0.08, fences: 0.1 })
            const append = async () => (await session.submit(records.map(inputOf), conditions)).ack()
            return { records, conditions, append }
          },
          close: () => session.close(),
        }),
    })
  }
}

/** Appends single records through producers, which collect them into batches. */
export class ProducerWriter extends PipeliningActor {
  protected readonly inFlightMax = 12

  protected open(engine: SimulatedEngine, stream: string): void {
    const { prng } = this.world
    const { fencingToken } = this.beliefs.conditions(prng, stream, { fences: 0.1 })
    const lingerMs = prng.pick([0, 5, 100])
    const producer = engine
      .stream(stream)
      .producer({ lingerMs, recordsMax: prng.pick([1, 3, 1000]), fencingToken })
    this.opened({
      engine,
      stream,
      submit: (id) => {
        const record = dataRecord(id, 0, engine.clock.engineTime)
        const append = async () => this.#ackOf(id, await (await producer.submit(inputOf(record))).ack())
        const conditions = fencingToken === undefined ? {} : { fencingToken }
        return { records: [record], conditions, append }
      },
      close: () => producer.close(),
    })
  }

  /** The ack of a record, from that of its batch. */
  #ackOf(id: string, { seqNum, batch }: { readonly seqNum: number; readonly batch: AppendAck }): AppendAck {
    if (seqNum < batch.start.seqNum || seqNum >= batch.end.seqNum)
      throw new Violation(`record ${seqNum} is in the batch of its ack`, JSON.stringify(batch))
    const { timestamp } = this.world.observer.attempts.get(id)!.stored?.log.records[seqNum] ?? {
      timestamp: -1,
    }
    return { start: { seqNum, timestamp }, end: { seqNum: seqNum + 1, timestamp }, tail: batch.tail }
  }
}
