import { HeadwaterError, type ReadQuery } from '../../../../src/index.ts'
import { checkFailure } from '../checks/check-failure.ts'
import { type UnaryOutcome, unaryContradiction } from '../checks/check-unary-read.ts'
import { drawQuery } from '../drawing.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'
import type { Actor } from './actor.ts'

const IN_FLIGHT_MAX = 2

/** Reads single batches, waits for them in long polls, and checks tails. */
export class Reader implements Actor {
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
    const { scheduler, open, observer } = this.#world
    if (this.#isFinished || this.#inFlight >= IN_FLIGHT_MAX || open.length === 0) return
    const engine = scheduler.pick(open)
    const stream = this.#world.pickStream()
    this.#inFlight++
    if (scheduler.chance(0.3)) this.#checkTail(engine, stream)
    else this.#read(engine, stream, drawQuery(scheduler, observer.history(stream).now, 'unary'))
  }

  finish(): void {
    this.#isFinished = true
  }

  #read(engine: SimulatedEngine, stream: string, query: ReadQuery): void {
    const { observer, history: lines, mayFail } = this.#world
    const history = observer.history(stream)
    const since = history.observed.records
    const { window, stop } = engine.watch()
    lines.add(this.name, 'read batch', { engine: engine.name, stream, query })
    const check = (outcome: UnaryOutcome, found: string) => {
      history.observe(
        'records',
        since,
        `a read of ${JSON.stringify(query)} returns the stored records`,
        found,
        (moment) => unaryContradiction(query, outcome, moment, window),
      )
    }
    const settled = (event: string, details?: Record<string, unknown>) => {
      stop()
      this.#inFlight--
      lines.add(this.name, event, details)
    }
    // By the rules of the wire protocol, whose table of rejected reads the checks know.
    engine.call(engine.stream(stream).readUnary(query, {}), {
      done: ({ records }) => {
        const seqNums = records.map(({ seqNum }) => seqNum)
        const found = `${seqNums.length} records from ${seqNums[0]} to ${seqNums.at(-1)}`
        settled('batch', { from: seqNums[0], to: seqNums.at(-1), count: seqNums.length })
        check({ kind: 'records', records }, found)
      },
      failed: (error) => {
        const code = (error as HeadwaterError).code
        settled('no batch', { error: code })
        if (HeadwaterError.is(error) && code === 'range_not_satisfiable') {
          check({ kind: 'unsatisfiable', tail: error.tail! }, `416 with the tail ${error.tail!.seqNum}`)
        } else checkFailure(error, { history, since, mayFail, isClosing: !engine.isOpen })
      },
      lost: () => settled('lost'),
    })
  }

  #checkTail(engine: SimulatedEngine, stream: string): void {
    const { observer, history: lines, mayFail } = this.#world
    const history = observer.history(stream)
    const since = history.observed.records
    lines.add(this.name, 'check tail', { engine: engine.name, stream })
    const settled = (event: string, details?: Record<string, unknown>) => {
      this.#inFlight--
      lines.add(this.name, event, details)
    }
    engine.call(engine.stream(stream).checkTail(), {
      done: ({ seqNum, timestamp, closed = false }) => {
        settled('tail', { seqNum, timestamp, closed })
        history.observe(
          'records',
          since,
          'a tail check returns the tail',
          `${seqNum} at ${timestamp}${closed ? ', closed' : ''}`,
          ({ log, state, tailTimestamp, rules }) => {
            if (log === undefined) return 'there is no stream'
            const isTail = seqNum === state.tail && timestamp === tailTimestamp
            if (isTail && closed === rules.isClosed) return undefined
            return `it is ${state.tail} at ${tailTimestamp}${rules.isClosed ? ', closed' : ''}`
          },
        )
      },
      failed: (error) => {
        settled('no tail', { error: (error as HeadwaterError).code })
        checkFailure(error, { history, since, mayFail, isClosing: !engine.isOpen })
      },
      lost: () => settled('lost'),
    })
  }
}
