import type { AppendRequest } from '../../../src/storage/contract.ts'
import { type AppendPlan, type OptimisticPlan, planFromStored } from './append-plan.ts'
import { putChores } from './chores.ts'
import type { TailInsert } from './log-state.ts'
import { replaceLog } from './log-write.ts'
import { hasMarker, markerKey } from './tail-rows.ts'
import { completionOf, type Durability, type Transaction, write } from './transactions.ts'

/** Appends to one log. */
export interface LogAppends {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** Built on cached state. */
  readonly optimistic: OptimisticPlan | undefined
}

/** A group of appends, attempted once or twice. */
export interface Attempt {
  /** The plans of the latest attempt, which may have succeeded if the connection was lost. */
  plans: readonly AppendPlan[] | undefined
  /** A tail row that may have been added with a stale revision. */
  stale: TailInsert | undefined
}

/**
 * Adds a tail row without reading the log first. The key prevents a second row at the same position, and a
 * row with a stale revision has no effect. Resolves to whether the row counts; if not, readers ignore it.
 * Throws before attempting anything if the connection is lost.
 */
export function optimisticInsert(db: IDBDatabase, durability: Durability, row: TailInsert): Promise<boolean> {
  return insert(db.transaction('appends', 'readwrite', { durability }), row)
}

async function insert(transaction: IDBTransaction, { key, row }: TailInsert): Promise<boolean> {
  const completed = completionOf(transaction)
  let hasMarker = false
  try {
    const store = transaction.objectStore('appends')
    const marker = store.getKey(markerKey(key[0], row.revision))
    marker.onsuccess = () => {
      hasMarker = marker.result !== undefined
    }
    store.add(row, key)
    transaction.commit()
  } catch (error) {
    transaction.abort()
    await completed.catch(() => {})
    throw error
  }
  return completed.then(
    () => hasMarker,
    (error) => {
      // The key exists.
      if (transaction.error?.name === 'ConstraintError') return false
      throw error
    },
  )
}

/** Appends to logs that are read in the same transaction. Resolves to the plans once they are durable. */
export function appendWithRead(
  db: IDBDatabase,
  durability: Durability,
  logs: readonly LogAppends[],
  attempt: Attempt,
): Promise<readonly AppendPlan[]> {
  const { plans: attempted, stale } = attempt
  const stores = ['logs', 'appends', 'pages', 'parts', 'chores'] as const
  return write(db, stores, durability, async (transaction) => {
    const plans = await Promise.all(
      logs.map(async ({ logId, requests, optimistic }, index) => {
        if (optimistic !== undefined && (await isValid(transaction, optimistic))) return optimistic
        return planFromStored(transaction, logId, requests, attempted?.[index])
      }),
    )
    if (stale !== undefined && !(await hasMarker(transaction, stale.key[0], stale.row.revision))) {
      transaction.objectStore('appends').delete(stale.key)
    }
    attempt.plans = plans
    for (const plan of plans) execute(transaction, plan)
    return plans
  })
}

async function isValid(transaction: Transaction, { logId, insert }: OptimisticPlan): Promise<boolean> {
  const [takesTailRows, existing] = await Promise.all([
    hasMarker(transaction, logId, insert.row.revision),
    transaction.objectStore('appends').getKey(insert.key),
  ])
  return takesTailRows && existing === undefined
}

function execute(transaction: Transaction, { logId, insert, rescheduled, write }: AppendPlan): void {
  if (write !== undefined) replaceLog(transaction, logId, write.over, write)
  if (insert !== undefined) transaction.objectStore('appends').add(insert.row, insert.key)
  if (rescheduled === undefined) return
  transaction.objectStore('logs').put(rescheduled.row, logId)
  putChores(transaction, rescheduled)
}
