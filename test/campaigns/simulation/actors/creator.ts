import { AppendAttempt, closeOf, dataRecord, inputOf } from '../append-attempt.ts'
import {
  type CreationRequest,
  checkCreated,
  checkCreationFailure,
  REQUEST,
} from '../checks/check-creation.ts'
import { drawConfig } from '../settings.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Actor } from './actor.ts'

/** Creates streams as forks, with first records, metadata and an expiry. */
export class Creator extends Actor {
  protected readonly inFlightMax = 2

  protected begin(engine: SimulatedEngine): void {
    const { prng, settings, observer, basin } = this.world
    // Most names are in use, unless they have expired or were deleted.
    const stream = prng.pick(settings.created)
    const history = observer.history(stream)
    if (history.now.log !== undefined && !prng.chance(0.1)) return
    const request = this.#draw(stream, engine.clock.engineTime)
    const { id, config, expiry, fork, first } = request
    const since = history.observed.records
    observer.creations.set(id, request)
    if (first !== undefined) observer.attempts.set(first.id, first)
    first?.call()
    const settle = (status: 'acknowledged' | 'not made' | 'unknown') => {
      request.status = status
      first?.settle(status)
    }
    this.call({
      engine,
      history,
      event: fork === undefined ? 'create with content' : 'fork',
      details: { id, expiry, fork, records: first?.count },
      promise: engine.hw.basin(basin).createStream(stream, config, {
        metadata: { [REQUEST]: id },
        expiry,
        fork,
        records: first?.records.map(inputOf),
      }),
      done: ({ info }) => {
        settle('acknowledged')
        checkCreated(history, since, request, info)
      },
      failed: (error, circumstances) => {
        let mayHaveEffects = true
        try {
          const source = fork && observer.history(fork.stream)
          // A clock that leaps passes the hour in which a creation must end.
          const mayFail = circumstances.mayFail || settings.clockLeaps
          mayHaveEffects = checkCreationFailure(error, request, { ...circumstances, mayFail }, source)
        } finally {
          settle(mayHaveEffects ? 'unknown' : 'not made')
        }
      },
      lost: () => settle('unknown'),
    })
  }

  #draw(stream: string, now: number): CreationRequest {
    const { prng, streams, observer } = this.world
    const source = observer.history(prng.pick(streams.filter((name) => name !== stream)))
    const seqNum = prng.chance(0.5) ? prng.below(source.now.state.tail + 2) : undefined
    const seconds = prng.pick([2, 10, 30, 90])
    const expiry = prng.chance(0.5) ? { at: now + seconds * 1000 } : { idleSeconds: seconds }
    return {
      id: this.world.nextAttemptId(),
      stream,
      config: drawConfig(prng),
      expiry: prng.chance(0.4) ? expiry : undefined,
      fork: prng.chance(0.75) ? { stream: source.name, seqNum } : undefined,
      sourceSince: source.observed.records,
      first: prng.chance(0.4) ? this.#drawRecords(stream, now) : undefined,
      status: 'pending',
    }
  }

  #drawRecords(stream: string, now: number): AppendAttempt {
    const { prng, settings, observer } = this.world
    const id = this.world.nextAttemptId()
    const data = Array.from({ length: 1 + prng.below(3) }, (_, index) => dataRecord(id, index, now))
    const records = settings.closes && prng.chance(0.2) ? [...data, closeOf(now)] : data
    const since = observer.history(stream).observed.records
    return new AppendAttempt({ id, stream, records, conditions: {}, since })
  }
}
