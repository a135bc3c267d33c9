import type { AppendRequest } from '../../../src/storage/contract.ts'
import type { AppendPlan, AssumedPlan } from './append-plan.ts'
import { openingKey } from './append-row.ts'
import { planAgain, planAppends } from './plan-reading.ts'
import { putLog } from './put-log.ts'
import type { Database, WriteTransaction } from './schema.ts'
import type { SmallAppend } from './small-append.ts'
import { readLog } from './stored-log.ts'
import { type Durability, writeIn } from './transactions.ts'

/** Appends to one log. */
export interface LogAppends {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** From what is known of the log. */
  readonly assumed: AssumedPlan | undefined
}

/** What was tried of one group of appends. */
export interface Attempt {
  /** A connection that is lost does not tell whether it was made. */
  plans: readonly AppendPlan[] | undefined
  /** What may be behind a row that was not there any more. */
  leftOver: SmallAppend | undefined
}

/** Appends to logs that are looked at in the same transaction. Resolves to what came of it once it is durable. */
export function appendReading(
  db: Database,
  durability: Durability,
  logs: readonly LogAppends[],
  attempt: Attempt,
): Promise<readonly AppendPlan[]> {
  const { plans: tried, leftOver } = attempt
  const stores = ['logs', 'appends', 'pages', 'parts', 'chores'] as const
  return writeIn(db, stores, durability, async (transaction, raw) => {
    const appends = raw.objectStore('appends')
    const plans = await Promise.all(
      logs.map(async ({ logId, requests, assumed }, index) => {
        if (assumed !== undefined && (await isStill(transaction, assumed))) return assumed
        const log = await readLog(transaction, logId)
        if (leftOver !== undefined && leftOver.row.revision !== log?.row.revision)
          appends.delete(leftOver.key)
        return tried === undefined ? planAppends(logId, requests, log) : planAgain(tried[index]!, log)
      }),
    )
    attempt.plans = plans
    for (const { logId, added, write } of plans) {
      if (write !== undefined) putLog(raw, logId, write)
      else if (added !== undefined) appends.add(added.row, added.key)
    }
    return plans
  })
}

/** Whether the log is what the plan takes it for. */
async function isStill(transaction: WriteTransaction, { logId, added }: AssumedPlan): Promise<boolean> {
  const appends = transaction.objectStore('appends')
  const [opening, next] = await Promise.all([
    appends.getKey(openingKey(logId, added.row.revision)),
    appends.getKey(added.key),
  ])
  return opening !== undefined && next === undefined
}
