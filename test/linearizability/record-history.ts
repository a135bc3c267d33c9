import { macrotask } from '../../src/engine/macrotask.ts'
import { Prng } from '../../src/storage/conformance/prng.ts'
import type { History, Outcome, RecordedOperation } from './operations.ts'
import { operationOf, type StreamClient } from './stream-client.ts'
import type { OpenTarget } from './target.ts'
import { Belief, type Call, nextCall } from './workload.ts'

/** Tells times that rise: an operation is called after the first that is taken for it, and has returned before the second. */
export type Tick = () => number

export interface Workload {
  /** Decides what each client does; when it is done is the machine's. */
  readonly seed: number
  readonly streams: readonly string[]
  /** Their numbers: no two recorders of one history have the same. */
  readonly clients: readonly number[]
  readonly operationsPerClient: number
}

/** The way of a client to a stream; it is asked for once. */
export type Connect = (stream: string, client: number) => StreamClient

/** Lets all clients loose at once and writes down what they do. In the order of the returns. */
export async function recordHistory(
  { seed, streams, clients, operationsPerClient }: Workload,
  connect: Connect,
  tick: Tick,
): Promise<RecordedOperation[]> {
  const beliefs = new Map(streams.map((stream) => [stream, new Belief()]))
  const recorded: RecordedOperation[] = []
  const run = async (client: number) => {
    const prng = new Prng(seed * 1_000 + client)
    const connected = new Map(streams.map((stream) => [stream, connect(stream, client)]))
    let names = 0
    for (let i = 0; i < operationsPerClient; i++) {
      const stream = prng.pick(streams)
      const belief = beliefs.get(stream)!
      const call = nextCall(prng, belief, () => `${client}-${names++}`)
      for (let turns = prng.below(3); turns > 0; turns--) await macrotask()
      const operation = await recordOperation({ client, stream, call, on: connected.get(stream)! }, tick)
      belief.learn(call, operation.outcome)
      recorded.push(operation)
    }
  }
  await Promise.all(clients.map(run))
  return recorded
}

/** Reads each stream, by a way that does not fail, after all else has returned. */
export async function recordLastReads(
  streams: readonly string[],
  connect: (stream: string) => StreamClient,
  tick: Tick,
): Promise<RecordedOperation[]> {
  const recorded: RecordedOperation[] = []
  for (const stream of streams) {
    const on = connect(stream)
    for (const call of [{ kind: 'read' }, { kind: 'check-tail' }] as const) {
      const operation = await recordOperation({ client: LAST_READER, stream, call, on }, tick)
      if (operation.outcome.kind === 'failed') throw new Error(`the last ${call.kind} of ${stream} failed`)
      recorded.push(operation)
    }
  }
  return recorded
}

/** No other client has this number. */
const LAST_READER = 999

async function recordOperation(
  { client, stream, call, on }: { client: number; stream: string; call: Call; on: StreamClient },
  tick: Tick,
): Promise<RecordedOperation> {
  const operation = call.kind === 'append' ? operationOf(call.append) : { kind: call.kind }
  const calledAt = tick()
  const outcome = await perform(on, call)
  const returnedAt = tick()
  // Who has the history gives the numbers: there may be several recorders.
  return { id: -1, client, stream, operation, outcome, calledAt, returnedAt }
}

async function perform(client: StreamClient, call: Call): Promise<Outcome> {
  switch (call.kind) {
    case 'append':
      return client.append(call.append)
    case 'read':
      return client.read()
    case 'check-tail':
      return client.checkTail()
  }
}

/** A history of what recorders wrote down, in the order of the calls. */
export function joined(...recorded: readonly (readonly RecordedOperation[])[]): RecordedOperation[] {
  return recorded
    .flat()
    .sort((one, other) => one.calledAt - other.calledAt)
    .map((operation, id) => ({ ...operation, id }))
}

/** For recorders of one process. */
export function counter(): () => number {
  let time = 0
  return () => ++time
}

/** A history of a target in this process. */
export async function recordTarget(target: OpenTarget, workload: Workload): Promise<History> {
  const tick = counter()
  try {
    const recorded = await recordHistory(workload, target.connect, tick)
    return joined(recorded, await recordLastReads(workload.streams, target.reader, tick))
  } finally {
    await target.close()
  }
}
