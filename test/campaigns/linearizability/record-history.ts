import { macrotask } from '../../../src/runtime/macrotask.ts'
import { Prng } from '../../../src/runtime/random.ts'
import type { History, Operation, Outcome, RecordedOperation } from './operations.ts'
import { KnownState, nextOperation } from './workload.ts'

/** Performs operations on one stream. Expected failures are outcomes; others are thrown. */
export type Perform = (operation: Operation) => Promise<Outcome>

/** A system whose histories are recorded. */
export interface Target {
  /** Returns a client of a stream. Called once for each. */
  connect(stream: string, client: number): Perform
  close(): Promise<void>
}

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
  connect: Target['connect'],
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
      const operation = nextOperation(prng, state, () => `${client}-${names++}`)
      for (let turns = prng.below(3); turns > 0; turns--) await macrotask()
      const done = await recordOperation(client, stream, operation, connected.get(stream)!, tick)
      state.learn(operation, done.outcome)
      recorded.push(done)
    }
  }
  await Promise.all(clients.map(run))
  return recorded
}

/** Reads each stream after everything else has returned. */
export async function recordLastReads(
  streams: readonly string[],
  connect: Target['connect'],
  tick: Tick,
): Promise<RecordedOperation[]> {
  const recorded: RecordedOperation[] = []
  for (const stream of streams) {
    const perform = connect(stream, LAST_READER)
    for (const kind of ['read', 'check-tail'] as const) {
      const done = await recordOperation(LAST_READER, stream, { kind }, perform, tick)
      if (done.outcome.kind === 'failed') throw new Error(`the last ${kind} of ${stream} failed`)
      recorded.push(done)
    }
  }
  return recorded
}

/** Unique among all clients. */
const LAST_READER = 999

async function recordOperation(
  client: number,
  stream: string,
  operation: Operation,
  perform: Perform,
  tick: Tick,
): Promise<RecordedOperation> {
  const calledAt = tick()
  const outcome = await perform(operation)
  // The owner of the history numbers the operations, because there may be several recorders.
  return { id: -1, client, stream, operation, outcome, calledAt, returnedAt: tick() }
}

/** Merges what several recorders have recorded into a history, in the order of the calls. */
export function joined(...recorded: readonly (readonly RecordedOperation[])[]): History {
  return recorded
    .flat()
    .sort((a, b) => a.calledAt - b.calledAt)
    .map((operation, id) => ({ ...operation, id }))
}

/** A target whose faults end before the last reads. */
export interface SettledTarget extends Target {
  settle(): Promise<void>
}

/** Records a history of a target in this process. */
export async function recordTarget(target: Target | SettledTarget, workload: Workload): Promise<History> {
  let time = 0
  const tick = () => ++time
  try {
    const recorded = await recordHistory(workload, target.connect, tick)
    if ('settle' in target) await target.settle()
    return joined(recorded, await recordLastReads(workload.streams, target.connect, tick))
  } finally {
    await target.close()
  }
}
