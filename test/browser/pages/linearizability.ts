import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import type { RecordedOperation } from '../../campaigns/linearizability/operations.ts'
import {
  recordHistory,
  recordLastReads,
  type Target,
  type Workload,
} from '../../campaigns/linearizability/record-history.ts'
import { openEngines } from '../../campaigns/linearizability/targets/engines.ts'

let target: Target

/** Pages of one name share the storage. */
export async function openStorage(name: string): Promise<void> {
  target = await openEngines(indexedDb(name), 1)
}

/** Runs this page's share of the clients. */
export async function record(workload: Workload): Promise<RecordedOperation[]> {
  const recorded = await recordHistory(workload, target.connect, now)
  // Copying the contents to the test costs more than recording them.
  return recorded.map(withoutBodies)
}

export function recordLast(streams: readonly string[]): Promise<RecordedOperation[]> {
  return recordLastReads(streams, target.connect, now)
}

export async function closeStorage(): Promise<void> {
  await target.close()
}

/** The time of this tab, in milliseconds. */
export function now(): number {
  return performance.now()
}

function withoutBodies(recorded: RecordedOperation): RecordedOperation {
  if (recorded.outcome.kind !== 'read') return recorded
  const { kind, tail, streamHash } = recorded.outcome
  return { ...recorded, outcome: { kind, tail, streamHash } }
}
