import { HeadwaterError } from '../../../../src/index.ts'
import type { StreamHistory } from '../../model/stream-history.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { rejectionContradiction, unaryContradiction } from '../checks/read-rules.ts'
import { drawQuery } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import { Actor } from './actor.ts'

/** Reads single batches, waits for them in long polls, and checks tails. */
export class Reader extends Actor {
  protected readonly inFlightMax = 2

  protected begin(engine: SimulatedEngine): void {
    const { prng, observer } = this.world
    const history = observer.history(this.world.pickStream())
    if (prng.chance(0.3)) this.#checkTail(engine, history)
    else this.#read(engine, history)
  }

  #read(engine: SimulatedEngine, history: StreamHistory): void {
    const { prng } = this.world
    const query = drawQuery(prng, history.now, 'unary')
    const since = history.observed.records
    const window = engine.clock.watch()
    const text = `a read of ${JSON.stringify(query)} returns the stored records`
    this.call({
      engine,
      history,
      event: 'read batch',
      details: { query },
      // By the rules of the wire protocol, whose table of rejected reads the checks know.
      promise: engine.stream(history.name).readUnary(query, {}),
      done: ({ records }) => {
        engine.clock.unwatch(window)
        const found = `${records.length} records from ${records[0]?.seqNum} to ${records.at(-1)?.seqNum}`
        history.observe('records', since, [text, found], (moment) =>
          unaryContradiction(query, records, moment, window),
        )
      },
      failed: (error, circumstances) => {
        engine.clock.unwatch(window)
        if (HeadwaterError.is(error) && error.code === 'range_not_satisfiable') {
          const { tail } = error
          history.observe('records', since, [text, `416 with the tail ${tail!.seqNum}`], (moment) =>
            rejectionContradiction(query, 'unary', tail!, moment, window),
          )
        } else checkFailure(error, circumstances)
      },
    })
  }

  #checkTail(engine: SimulatedEngine, history: StreamHistory): void {
    const since = history.observed.records
    this.call({
      engine,
      history,
      event: 'check tail',
      promise: engine.stream(history.name).checkTail(),
      done: ({ seqNum, timestamp, closed = false }) => {
        const found = `${seqNum} at ${timestamp}${closed ? ', closed' : ''}`
        const texts = ['a tail check returns the tail', found] as const
        history.observe('records', since, texts, ({ log, state, tailTimestamp }) => {
          if (log === undefined) return 'there is no stream'
          const isTail = seqNum === state.tail && timestamp === tailTimestamp && closed === state.isClosed
          return isTail ? undefined : `it is ${state.tail} at ${tailTimestamp}`
        })
      },
    })
  }
}
