import type { HeadwaterError } from '../../../../src/index.ts'
import { AppendAttempt, closeOf, dataRecord, inputOf } from '../append-attempt.ts'
import { checkCreated, checkCreationFailure } from '../checks/check-creation.ts'
import { type CreationRequest, REQUEST } from '../creation-request.ts'
import { drawConfig } from '../settings.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'

const IN_FLIGHT_MAX = 2

/** Creates streams as forks, with first records, metadata and an expiry. */
export class Creator implements Actor {
  readonly name: string
  readonly #world: World
  #inFlight = 0
  #isFinished = false

  constructor(name: string, world: World) {
    this.name = name
    this.#world = world
  }

  get isIdle(): boolean {
    return this.#inFlight === 0
  }

  act(): void {
    const { scheduler, open, settings, observer } = this.#world
    if (this.#isFinished || this.#inFlight >= IN_FLIGHT_MAX || open.length === 0) return
    // Most names are in use, unless they have expired or were deleted.
    const stream = scheduler.pick(settings.created)
    const isFree = observer.history(stream).now.log === undefined
    if (!isFree && !scheduler.chance(0.1)) return
    this.#create(scheduler.pick(open), stream)
  }

  finish(): void {
    this.#isFinished = true
  }

  #create(engine: SimulatedEngine, stream: string): void {
    const { observer, history: lines, mayFail } = this.#world
    const { window, stop } = engine.watch()
    const request = this.#draw(stream, engine.clock.engineTime)
    const { id, config, expiry, fork, first } = request
    const since = observer.history(stream).observed.records
    observer.creations.set(id, request)
    if (first !== undefined) {
      observer.attempts.set(first.id, first)
      first.call(window)
    }
    this.#inFlight++
    lines.add(this.name, fork === undefined ? 'create with content' : 'fork', {
      engine: engine.name,
      stream,
      id,
      expiry,
      fork,
      records: first?.records.length,
    })
    const settle = (status: 'acknowledged' | 'not made' | 'unknown', error?: unknown) => {
      this.#inFlight--
      stop()
      request.status = status
      first?.settle(status)
      const { code } = (error ?? {}) as Partial<HeadwaterError>
      lines.add(this.name, `creation: ${status}`, { id, error: code })
    }
    const created = this.#world.basinOf(engine).createStream(stream, config, {
      metadata: { [REQUEST]: id },
      expiry,
      fork,
      records: first?.records.map(inputOf),
    })
    engine.call(created, {
      done: ({ info }) => {
        settle('acknowledged')
        checkCreated(observer.history(stream), since, request, info)
      },
      failed: (error) => {
        let mayHaveEffects = true
        try {
          mayHaveEffects = checkCreationFailure(error, request, {
            history: observer.history(stream),
            source: fork && observer.history(fork.stream),
            since,
            mayFail,
            isClosing: !engine.isOpen,
          })
        } finally {
          settle(mayHaveEffects ? 'unknown' : 'not made', error)
        }
      },
      lost: () => settle('unknown'),
    })
  }

  #draw(stream: string, now: number): CreationRequest {
    const { scheduler, streams, observer } = this.#world
    const sources = streams.filter((name) => name !== stream)
    const source = observer.history(scheduler.pick(sources))
    const forks = scheduler.chance(0.75)
    const seqNum = scheduler.chance(0.5) ? scheduler.below(source.now.state.tail + 2) : undefined
    const expires = scheduler.chance(0.4)
    const seconds = scheduler.pick([2, 10, 30, 90])
    const isAt = scheduler.chance(0.5)
    return {
      id: this.#world.nextAttemptId(),
      stream,
      config: drawConfig(scheduler),
      expiry: expires ? (isAt ? { at: now + seconds * 1000 } : { idleSeconds: seconds }) : undefined,
      fork: forks ? { stream: source.name, seqNum } : undefined,
      sourceSince: source.observed.records,
      first: scheduler.chance(0.4) ? this.#drawRecords(stream, now) : undefined,
      status: 'pending',
    }
  }

  #drawRecords(stream: string, now: number): AppendAttempt {
    const { scheduler, settings, observer } = this.#world
    const id = this.#world.nextAttemptId()
    const data = Array.from({ length: 1 + scheduler.below(3) }, (_, index) => dataRecord(id, index, now, 0))
    const records = settings.closes && scheduler.chance(0.2) ? [...data, closeOf(now)] : data
    const since = observer.history(stream).observed.records
    return new AppendAttempt({
      id,
      stream,
      records,
      conditions: {},
      group: undefined,
      turn: undefined,
      since,
    })
  }
}
