import { macrotask } from '../../../src/runtime/macrotask.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { History, Outcome, RecordedOperation } from './operations.ts'
import { type Connect, type OpenTarget, operationOf, type StreamClient } from './stream-client.ts'
import { type Call, KnownState, nextCall } from './workload.ts'

/** Returns increasing times: one before each call, and one after each return. */
type Tick = () => number

export interface Workload {
  /** Decides what each client does. The machine decides when. */
  readonly seed: number
  readonly streams: readonly string[]
  /** The numbers of the clients, unique among all recorders of a history. */
  readonly clients: readonly number[]
  readonly operationsPerClient: number
}

/** Starts all clients at once and records their operations, in the order of the returns. */
export async function recordHistory(
  { seed, streams, clients, operationsPerClient }: Workload,
  connect: Connect,
  tick: Tick,
): Promise<RecordedOperation[]> {
  const states = new Map(streams.map((stream) => [stream, new KnownState()]))
  const recorded: RecordedOperation[] = []
  const run = async (client: number) => {
    const prng = new Prng(seed * 1_000 + client)
    const connected = new Map(streams.map((stream) => [stream, connect(stream, client)]))
    let names = 0
    for (let i = 0; i < operationsPerClient; i++) {
      const stream = prng.pick(streams)
      const state = states.get(stream)!
      const call = nextCall(prng, state, () => `${client}-${names++}`)
      for (let turns = prng.below(3); turns > 0; turns--) await macrotask()
      const operation = await recordOperation({ client, stream, call, on: connected.get(stream)! }, tick)
      state.learn(call, operation.outcome)
      recorded.push(operation)
    }
  }
  await Promise.all(clients.map(run))
  return recorded
}

/** Reads each stream after everything else has returned, through a client without faults. */
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

/** Unique among all clients. */
const LAST_READER = 999

async function recordOperation(
  { client, stream, call, on }: { client: number; stream: string; call: Call; on: StreamClient },
  tick: Tick,
): Promise<RecordedOperation> {
  const operation = call.kind === 'append' ? operationOf(call.append) : { kind: call.kind }
  const calledAt = tick()
  const outcome = await perform(on, call)
  const returnedAt = tick()
  // The owner of the history numbers the operations, because there may be several recorders.
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

/** Merges the records of several recorders into a history, in the order of the calls. */
export function joined(...recorded: readonly (readonly RecordedOperation[])[]): RecordedOperation[] {
  return recorded
    .flat()
    .sort((a, b) => a.calledAt - b.calledAt)
    .map((operation, id) => ({ ...operation, id }))
}

/** For recorders in one process. */
export function counter(): () => number {
  let time = 0
  return () => ++time
}

/** Records a history of a target in this process. */
export async function recordTarget(target: OpenTarget, workload: Workload): Promise<History> {
  const tick = counter()
  try {
    const recorded = await recordHistory(workload, target.connect, tick)
    return joined(recorded, await recordLastReads(workload.streams, target.reader, tick))
  } finally {
    await target.close()
  }
}
