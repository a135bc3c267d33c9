import type { AppendRequest } from '../../../src/storage/contract.ts'
import type { AppendPlan } from './append-plan.ts'
import { planAgain, planAppends } from './plan-reading.ts'
import { putLog } from './put-log.ts'
import type { Database } from './schema.ts'
import type { SmallAppend } from './small-append.ts'
import { readLog } from './stored-log.ts'
import { type Durability, writeIn } from './transactions.ts'

/** What was tried of one group of appends. */
export interface Attempt {
  /** A connection that is lost does not tell whether it was made. */
  plans: readonly AppendPlan[] | undefined
  /** What may be behind a row that was not there any more. */
  assumed: SmallAppend | undefined
}

/** Appends to logs that are read in the same transaction. Resolves to what came of it once it is durable. */
export function appendReading(
  db: Database,
  durability: Durability,
  groups: ReadonlyMap<string, readonly AppendRequest[]>,
  attempt: Attempt,
): Promise<readonly AppendPlan[]> {
  const { plans: tried, assumed } = attempt
  const stores = ['logs', 'appends', 'pages', 'parts', 'chores'] as const
  return writeIn(db, stores, durability, async (transaction, raw) => {
    const logs = await Promise.all([...groups.keys()].map((logId) => readLog(transaction, logId)))
    const plans = [...groups].map(([logId, requests], index) =>
      tried === undefined ? planAppends(logId, requests, logs[index]) : planAgain(tried[index]!, logs[index]),
    )
    attempt.plans = plans
    const appends = raw.objectStore('appends')
    if (assumed !== undefined && assumed.row.revision !== logs[0]?.row.revision) appends.delete(assumed.key)
    for (const { logId, added, write } of plans) {
      if (write !== undefined) putLog(raw, logId, write)
      else if (added !== undefined) appends.add(added.row, added.key)
    }
    return plans
  })
}
