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
export function record(workload: Workload): Promise<RecordedOperation[]> {
  return recordHistory(workload, target.connect, now)
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
