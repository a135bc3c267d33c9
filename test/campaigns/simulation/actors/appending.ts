import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendConditions } from '../../../../src/model/append-input.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import type { AppendOutcome } from '../../linearizability/operations.ts'
import { KnownState } from '../../linearizability/workload.ts'
import { AppendAttempt, type AttemptGroup, type SentRecord } from '../append-attempt.ts'
import { checkAck, checkAckOrder, isClosedAgain, outcomeOfFailure } from '../checks/check-append.ts'
import type { Call, SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'

export interface AppendRequest {
  readonly actor: string
  readonly engine: SimulatedEngine
  readonly stream: string
  readonly id: string
  readonly records: readonly SentRecord[]
  readonly conditions: AppendConditions
  readonly group?: AttemptGroup
  readonly turn?: NonNullable<AppendAttempt['turn']>
  /** The acks of the group arrive in order. */
  readonly ordersAcks?: boolean
  /** The batch of a producer that is appended again. */
  readonly repeated?: AppendAttempt | undefined
}

/**
 * Tracks the appends of a world: the requests, their outcomes, and what the writers believe about the
 * streams.
 */
export class Appending {
  readonly #world: World
  readonly #knownStates = new Map<string, KnownState>()
  #lastStreamSeq = 0

  constructor(world: World) {
    this.#world = world
  }

  knownState(stream: string): KnownState {
    const knownState = this.#knownStates.get(stream) ?? new KnownState()
    this.#knownStates.set(stream, knownState)
    return knownState
  }

  drawConditions(stream: string, matches: number, fences: number): AppendConditions {
    const { scheduler } = this.#world
    const knownState = this.knownState(stream)
    return {
      ...(scheduler.chance(matches) && { matchSeqNum: knownState.tail(scheduler) }),
      ...(scheduler.chance(fences) && { fencingToken: knownState.token(scheduler) }),
      ...(this.#world.settings.streamSeqs && scheduler.chance(0.15) && { streamSeq: this.#streamSeq() }),
    }
  }

  /** Usually greater than those before. */
  #streamSeq(): string {
    const { scheduler } = this.#world
    this.#lastStreamSeq += scheduler.below(3)
    const number = this.#lastStreamSeq - (scheduler.chance(0.2) ? scheduler.below(4) : 0)
    return `n${String(Math.max(0, number)).padStart(6, '0')}`
  }

  /** Makes the call `append`. `settled` is called with whether it was acknowledged, and the error if not. */
  begin<Result>(
    request: AppendRequest,
    append: () => Promise<Result>,
    ackOf: (result: Result) => AppendAck,
    settled: (isAcknowledged: boolean, error?: Partial<HeadwaterError>) => void,
  ): AppendAttempt {
    const { actor, engine, stream, id, records, conditions, group, turn, repeated } = request
    const { observer, history: lines } = this.#world
    const history = observer.history(stream)
    const { window, stop } = engine.watch()
    const since = history.observed.records
    const attempt = repeated ?? new AppendAttempt({ id, stream, records, conditions, group, turn, since })
    attempt.call(window)
    observer.attempts.set(id, attempt)
    lines.add(actor, 'append', {
      engine: engine.name,
      stream,
      id,
      records: records.map(summaryOf),
      ...conditions,
    })
    const mayFail = this.#world.mayFail
    const end = (outcome: AppendOutcome, error?: unknown) => {
      stop()
      const failure = (error ?? {}) as Partial<HeadwaterError>
      const { code } = failure
      lines.add(actor, outcome.kind, { id, ...outcome, kind: undefined, error: code })
      const fence = attempt.operation.setFencingToken
      const operation = {
        kind: 'append',
        bodies: [],
        ...(fence !== undefined && { setFencingToken: fence }),
      } as const
      this.knownState(stream).learn(operation, outcome)
      settled(outcome.kind === 'appended', failure)
    }
    const call: Call<Result> = {
      done: (result) => {
        const ack = ackOf(result)
        attempt.settle(isClosedAgain(attempt, ack) ? 'not made' : 'acknowledged')
        if (ack.duplicate)
          lines.add(actor, attempt.conditions.producer ? 'duplicate' : 'closed already', { id })
        end({ kind: 'appended', start: ack.start.seqNum, end: ack.end.seqNum, tail: ack.tail.seqNum })
        checkAck(history, attempt, ack)
        if (request.ordersAcks) checkAckOrder(attempt)
      },
      failed: (error) => {
        const isClosing = !engine.isOpen
        let outcome: AppendOutcome = { kind: 'unknown' }
        try {
          outcome = outcomeOfFailure(
            attempt,
            error,
            { history, since: group?.since ?? since, mayFail, isClosing },
            since,
          )
        } finally {
          attempt.settle(outcome.kind === 'unknown' ? 'unknown' : 'not made')
        }
        end(outcome, error)
      },
      lost: () => {
        attempt.settle('unknown')
        end({ kind: 'unknown' })
      },
    }
    engine.call(append(), call)
    return attempt
  }
}

function summaryOf({ command, timestamp, meteredBytes }: SentRecord): unknown {
  return command ? { ...command, timestamp } : { bytes: meteredBytes, timestamp }
}
