import type { AppendRequest } from '../../../src/storage/contract.ts'
import type { AppendPlan, AssumedPlan } from './append-plan.ts'
import { planReading } from './plan-reading.ts'
import { putChores, putLog } from './put-log.ts'
import type { Database, WriteTransaction } from './schema.ts'
import type { SmallAppend } from './small-append.ts'
import { isMarked } from './stored-log.ts'
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
    const plans = await Promise.all(
      logs.map(async ({ logId, requests, assumed }, index) => {
        if (assumed !== undefined && (await isStill(transaction, assumed))) return assumed
        return planReading(transaction, logId, requests, tried?.[index])
      }),
    )
    if (leftOver !== undefined && !(await isMarked(transaction, leftOver.key[0], leftOver.row.revision))) {
      raw.objectStore('appends').delete(leftOver.key)
    }
    attempt.plans = plans
    for (const plan of plans) put(raw, plan)
    return plans
  })
}

/** Whether the log is what the plan takes it for. */
async function isStill(transaction: WriteTransaction, { logId, added }: AssumedPlan): Promise<boolean> {
  const [takesAppends, next] = await Promise.all([
    isMarked(transaction, logId, added.row.revision),
    transaction.objectStore('appends').getKey(added.key),
  ])
  return takesAppends && next === undefined
}

function put(transaction: IDBTransaction, { logId, added, relisted, write }: AppendPlan): void {
  if (write !== undefined) putLog(transaction, logId, write.over, write)
  if (added !== undefined) transaction.objectStore('appends').add(added.row, added.key)
  if (relisted === undefined) return
  transaction.objectStore('logs').put(relisted.row, logId)
  putChores(transaction, relisted)
}
