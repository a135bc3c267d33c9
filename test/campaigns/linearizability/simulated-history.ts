import { Prng } from '../../../src/runtime/prng.ts'
import {
  type AppendOperation,
  type AppendOutcome,
  type History,
  type Operation,
  type Outcome,
  type RecordedOperation,
  UNKNOWN,
} from './operations.ts'
import { contentsOf, operationOf } from './stream-client.ts'
import { type Call, KnownState, nextCall } from './workload.ts'

/** A stream that performs one operation at a time. */
class SimulatedStream {
  readonly records: bigint[] = []
  fencingToken = ''

  append(append: AppendOperation): AppendOutcome {
    const { fencingToken, matchSeqNum } = append
    if (fencingToken !== undefined && fencingToken !== this.fencingToken) {
      return { kind: 'refused', fencingToken: this.fencingToken }
    }
    if (matchSeqNum !== undefined && matchSeqNum !== this.records.length) {
      return { kind: 'refused', seqNum: this.records.length }
    }
    const { recordHashes, setFencingToken } = append
    const start = this.records.length
    this.records.push(...recordHashes)
    this.fencingToken = setFencingToken ?? this.fencingToken
    const end = this.records.length
    return { kind: 'appended', start, end, tail: end }
  }

  read(): Outcome {
    return contentsOf(this.records)
  }

  checkTail(): Outcome {
    return { kind: 'tail', tail: this.records.length }
  }
}

export interface Simulation {
  readonly seed: number
  readonly operations: number
  readonly clients?: number
  /**
   * The probability that a client never learns the outcome of its append. In a third of these cases each, it
   * took effect, will take effect, or never does.
   */
  readonly lost?: number
}

interface SimulatedClient {
  readonly number: number
  /** The current operation of a client and its outcome, as far as known. */
  called?: {
    readonly call: Call
    readonly operation: Operation
    readonly at: number
  }
  outcome?: Outcome
}

/**
 * Generates a history of concurrent clients of a stream, in which each operation takes effect at one moment
 * between its call and its return.
 */
export function simulatedHistory({ seed, operations, clients = 10, lost = 0 }: Simulation): History {
  const prng = new Prng(seed)
  const state = new KnownState()
  const stream = new SimulatedStream()
  const recorded: RecordedOperation[] = []
  const late: AppendOperation[] = []
  let [time, names, calls] = [0, 0, 0]

  const call = (client: SimulatedClient, next: Call) => {
    const operation = next.kind === 'append' ? operationOf(next.append) : { kind: next.kind }
    client.called = { call: next, operation, at: ++time }
    calls++
  }
  const perform = (client: SimulatedClient) => {
    const { operation } = client.called!
    if (operation.kind === 'read') client.outcome = stream.read()
    else if (operation.kind === 'check-tail') client.outcome = stream.checkTail()
    else if (!prng.chance(lost)) client.outcome = stream.append(operation)
    else {
      const choice = prng.below(3)
      if (choice === 0) stream.append(operation)
      if (choice === 1) late.push(operation)
      client.outcome = UNKNOWN
    }
  }
  const finish = (client: SimulatedClient) => {
    const { call, operation, at } = client.called!
    const outcome = client.outcome!
    const id = recorded.length
    recorded.push({
      id,
      client: client.number,
      stream: 's',
      operation,
      outcome,
      calledAt: at,
      returnedAt: ++time,
    })
    state.learn(call, outcome)
    delete client.called
    delete client.outcome
  }

  const idle = Array.from({ length: clients }, (_, number): SimulatedClient => ({ number }))
  while (recorded.length < operations) {
    const client = prng.pick(idle)
    if (client.outcome !== undefined) finish(client)
    else if (client.called !== undefined) perform(client)
    else if (calls < operations)
      call(
        client,
        nextCall(prng, state, () => `${names++}`),
      )
    if (late.length > 0 && prng.chance(0.02)) stream.append(late.shift()!)
  }
  const last: SimulatedClient = { number: clients }
  call(last, { kind: 'read' })
  perform(last)
  finish(last)
  return recorded
}
