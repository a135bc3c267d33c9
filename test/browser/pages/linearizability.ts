import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { openEngines } from '../../campaigns/linearizability/engine-target.ts'
import type { RecordedOperation } from '../../campaigns/linearizability/operations.ts'
import {
  counter,
  recordHistory,
  recordLastReads,
  type Workload,
} from '../../campaigns/linearizability/record-history.ts'
import type { OpenTarget } from '../../campaigns/linearizability/stream-client.ts'

/**
 * The storages that a page can have, by the name of what it holds: pages of one name share what the storage
 * lets them share.
 */
const STORAGES = {
  memory: (_: string) => memory(),
  indexeddb: (name: string) => indexedDb(name),
} satisfies Readonly<Record<string, (name: string) => Storage>>

export type StorageName = keyof typeof STORAGES

const TICKS = { counted: counter(), told: now }

let target: OpenTarget | undefined

export async function openStorage(storage: StorageName, name: string): Promise<void> {
  target = await openEngines(STORAGES[storage](name), 1)
}

/** By a counter, or by the time of the tab where several record one history. */
type Times = 'counted' | 'told'

/** Runs this page's share of the clients. */
export async function record(workload: Workload, times: Times): Promise<RecordedOperation[]> {
  const recorded = await recordHistory(workload, target!.connect, TICKS[times])
  // Copying them to the test costs more than recording them.
  return recorded.map(withoutContents)
}

/** With the contents of the streams. */
export function recordLast(streams: readonly string[], times: Times): Promise<RecordedOperation[]> {
  return recordLastReads(streams, target!.reader, TICKS[times])
}

export async function closeStorage(): Promise<void> {
  await target!.close()
}

/** The time of this tab, in milliseconds. */
export function now(): number {
  return performance.now()
}

function withoutContents(recorded: RecordedOperation): RecordedOperation {
  if (recorded.outcome.kind !== 'read') return recorded
  const { kind, tail, streamHash } = recorded.outcome
  return { ...recorded, outcome: { kind, tail, streamHash } }
}
