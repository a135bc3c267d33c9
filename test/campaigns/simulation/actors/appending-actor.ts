import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import { AppendAttempt, type SentRecord } from '../append-attempt.ts'
import { checkAck, checkAckOrder, effectOfFailure, isClosedAgain } from '../checks/check-append.ts'
import type { SimulatedEngine } from '../simulated-engine.ts'
import type { World } from '../world.ts'
import { Actor } from './actor.ts'
import type { Beliefs } from './beliefs.ts'

export interface AppendRequest
  extends Pick<AppendAttempt, 'id' | 'stream' | 'records' | 'conditions'>,
    Partial<Pick<AppendAttempt, 'group' | 'turn'>> {
  readonly engine: SimulatedEngine
  /** The acks of the group arrive in order. */
  readonly ordersAcks?: boolean
  /** The batch of a producer that is appended again. */
  readonly repeated?: AppendAttempt | undefined
}

/** An actor that appends: tracks its requests and their outcomes. */
export abstract class AppendingActor extends Actor {
  protected readonly beliefs: Beliefs

  constructor(name: string, world: World, beliefs: Beliefs) {
    super(name, world)
    this.beliefs = beliefs
  }

  /** Makes the call `append`. `settled` is called with whether it was acknowledged. */
  protected append(
    request: AppendRequest,
    append: () => Promise<AppendAck>,
    settled: (isAcknowledged: boolean) => void = () => {},
  ): void {
    const { engine, stream, id, records, conditions, repeated, ordersAcks } = request
    const { mayFail, observer } = this.world
    const history = observer.history(stream)
    const since = history.observed.records
    const attempt = repeated ?? new AppendAttempt({ ...request, since })
    attempt.call()
    observer.attempts.set(id, attempt)
    this.beliefs.began(attempt)
    this.inFlight++
    this.note('append', { engine: engine.name, stream, id, records: records.map(summaryOf), ...conditions })
    const end = (outcome: 'acknowledged' | 'not made' | 'unknown', error?: unknown) => {
      this.inFlight--
      const failure = (error ?? {}) as Partial<HeadwaterError>
      attempt.settle(outcome)
      this.note(failure.code === undefined ? outcome : `${outcome}: ${failure.code}`, { id })
      if (outcome === 'not made') this.beliefs.rejected(attempt, failure)
      settled(outcome === 'acknowledged')
    }
    engine.call(append(), {
      done: (ack) => {
        end(isClosedAgain(attempt, ack) ? 'not made' : 'acknowledged')
        if (ack.duplicate) this.note(conditions.producer ? 'duplicate' : 'closed already', { id })
        this.beliefs.acknowledged(attempt, ack.end.seqNum)
        checkAck(history, attempt, ack, since)
        if (ordersAcks) checkAckOrder(attempt)
      },
      failed: (error) => {
        const isClosing = !engine.isOpen
        const circumstances = { history, since: request.group?.since ?? since, mayFail, isClosing }
        let effect: 'not made' | 'unknown' = 'unknown'
        try {
          effect = effectOfFailure(attempt, error, circumstances, since)
        } finally {
          end(effect, error)
        }
      },
      lost: () => end('unknown'),
    })
  }
}

function summaryOf({ command, timestamp, body }: SentRecord): unknown {
  return command ? { ...command, timestamp } : { bytes: body.length, timestamp }
}
