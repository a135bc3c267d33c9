import { Prng } from '../../src/storage/conformance/prng.ts'
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
import { Belief, type Call, nextCall } from './workload.ts'

/** A stream that does one thing at a time. Tests break it by overriding what it does. */
export class SimulatedStream {
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
    return this.store(append)
  }

  store({ recordHashes, setFencingToken }: AppendOperation): AppendOutcome {
    const start = this.records.length
    this.records.push(...recordHashes)
    this.fencingToken = setFencingToken ?? this.fencingToken
    const end = this.records.length
    return { kind: 'appended', start, end, tail: end }
  }

  /** `acknowledged` is where the acknowledged appends ended when the read was called; of use to a stream that wants to tell less. */
  read(_acknowledged: number): Outcome {
    return contentsOf(this.records)
  }

  checkTail(_acknowledged: number): Outcome {
    return { kind: 'tail', tail: this.records.length }
  }
}

export interface Simulation {
  readonly seed: number
  readonly operations: number
  readonly clients?: number
  /** The probability that a client never hears of its append; a third each: it took effect, it will, it never does. */
  readonly lost?: number
  readonly stream?: SimulatedStream
}

interface SimulatedClient {
  readonly number: number
  /** What it has called and what came of it, as far as it has got. */
  called?: {
    readonly call: Call
    readonly operation: Operation
    readonly at: number
    readonly acknowledged: number
  }
  outcome?: Outcome
}

/** A history of concurrent clients of a stream: each operation takes effect at one moment between its call and its return. */
export function simulatedHistory({
  seed,
  operations,
  clients = 10,
  lost = 0,
  stream = new SimulatedStream(),
}: Simulation): History {
  const prng = new Prng(seed)
  const belief = new Belief()
  const recorded: RecordedOperation[] = []
  const late: AppendOperation[] = []
  let [time, names, calls, acknowledged] = [0, 0, 0, 0]

  const call = (client: SimulatedClient, next: Call) => {
    const operation = next.kind === 'append' ? operationOf(next.append) : { kind: next.kind }
    client.called = { call: next, operation, at: ++time, acknowledged }
    calls++
  }
  const perform = (client: SimulatedClient) => {
    const { operation, acknowledged: before } = client.called!
    if (operation.kind === 'read') client.outcome = stream.read(before)
    else if (operation.kind === 'check-tail') client.outcome = stream.checkTail(before)
    else if (!prng.chance(lost)) client.outcome = stream.append(operation)
    else {
      const fate = prng.below(3)
      if (fate === 0) stream.append(operation)
      if (fate === 1) late.push(operation)
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
    belief.learn(call, outcome)
    if (outcome.kind === 'appended') acknowledged = Math.max(acknowledged, outcome.end)
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
        nextCall(prng, belief, () => `${names++}`),
      )
    if (late.length > 0 && prng.chance(0.02)) stream.append(late.shift()!)
  }
  const last: SimulatedClient = { number: clients }
  call(last, { kind: 'read' })
  perform(last)
  finish(last)
  return recorded
}
