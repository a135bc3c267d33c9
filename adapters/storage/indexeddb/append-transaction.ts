import { unwrap } from 'idb'
import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import { type StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { appendConflict } from '../../../src/storage/heads.ts'
import { isSameSchedule, putChores, type RescheduledLog, reschedule } from './chores.ts'
import { completionOf, type TransactionDurability, write } from './connection.ts'
import { type LogWrite, replaceLog, writeWithAppends } from './log-write.ts'
import { readBlocks } from './page.ts'
import type { IndexedDatabase, LogRow, WriteTransaction } from './schema.ts'
import {
  foldTailRows,
  hasMarker,
  type LogState,
  lastTailRow,
  logStateOf,
  markerKey,
  planTailInsert,
  readTailLog,
  type TailInsert,
} from './tail-rows.ts'

/** Appends to one log. */
export interface LogAppends {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** Built on cached state. */
  readonly optimistic: OptimisticPlan | undefined
}

/** A group of appends, attempted once or twice. */
export interface GroupAttempt {
  /** The plans of the latest attempt, which may have succeeded if the connection was lost. */
  plans: readonly AppendPlan[] | undefined
  /** A tail row that may have been added with a stale revision. */
  stale: TailInsert | undefined
}

/**
 * Adds a tail row without reading the log first. The key prevents a second row at the same position, and a
 * row with a stale revision has no effect. Resolves to whether the row counts; if not, readers ignore it.
 * Throws before attempting anything if the connection is lost.
 *
 * Uses the raw API, because the promises of `idb` take a tenth of the time of an awaited append.
 */
export function optimisticInsert(
  db: IndexedDatabase,
  durability: TransactionDurability,
  row: TailInsert,
): Promise<boolean> {
  return insert(unwrap(db).transaction('appends', 'readwrite', { durability }), row)
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
  db: IndexedDatabase,
  durability: TransactionDurability,
  logs: readonly LogAppends[],
  attempt: GroupAttempt,
): Promise<readonly AppendPlan[]> {
  const { plans: attempted, stale } = attempt
  const stores = ['logs', 'appends', 'pages', 'parts', 'chores'] as const
  return write(db, stores, durability, async (transaction, raw) => {
    const plans = await Promise.all(
      logs.map(async ({ logId, requests, optimistic }, index) => {
        if (optimistic !== undefined && (await isValid(transaction, optimistic))) return optimistic
        return planFromStored(transaction, logId, requests, attempted?.[index])
      }),
    )
    if (stale !== undefined && !(await hasMarker(transaction, stale.key[0], stale.row.revision))) {
      raw.objectStore('appends').delete(stale.key)
    }
    attempt.plans = plans
    for (const plan of plans) execute(raw, plan)
    return plans
  })
}

async function isValid(transaction: WriteTransaction, { logId, insert }: OptimisticPlan): Promise<boolean> {
  const [takesTailRows, existing] = await Promise.all([
    hasMarker(transaction, logId, insert.row.revision),
    transaction.objectStore('appends').getKey(insert.key),
  ])
  return takesTailRows && existing === undefined
}

function execute(transaction: IDBTransaction, { logId, insert, rescheduled, write }: AppendPlan): void {
  if (write !== undefined) replaceLog(transaction, logId, write.over, write)
  if (insert !== undefined) transaction.objectStore('appends').add(insert.row, insert.key)
  if (rescheduled === undefined) return
  transaction.objectStore('logs').put(rescheduled.row, logId)
  putChores(transaction, rescheduled)
}

/** The planned outcome of appends to one log. */
export interface AppendPlan {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** The reason for each request that is refused. */
  readonly refusals: readonly (StorageConflict | StorageFailure | undefined)[]
  /** The head that the plan builds on; undefined if the log does not exist. */
  readonly before: Head | undefined
  /** A tail row to add, if the appends are small; chores may have to be rescheduled with it. */
  readonly insert?: TailInsert | undefined
  readonly rescheduled?: RescheduledLog | undefined
  /** A new version of the log row, if the appends are large. */
  readonly write?: ({ readonly over: LogRow } & LogWrite) | undefined
  /** The state of the log afterwards; undefined if its row takes no tail rows. */
  readonly after: LogState | undefined
}

/** A plan built on cached state. It is valid if that is still the state of the log. */
interface OptimisticPlan extends AppendPlan {
  readonly insert: TailInsert
}

/** Undefined if the log has to be read. */
export function planOptimistically(
  logId: string,
  requests: readonly AppendRequest[],
  before: LogState,
): OptimisticPlan | undefined {
  const { accepted, refusals } = checkHeads(logId, requests, before.head)
  if (accepted.length < requests.length) return undefined
  const tail = planTailInsert(logId, before, accepted)
  if (tail === undefined || !isSameSchedule(before, tail.after)) return undefined
  return { logId, requests, refusals, before: before.head, ...tail }
}

/**
 * Plans appends to a log from its stored state. After an attempt whose outcome is unknown, returns the
 * attempted plan if it succeeded, and a new plan if it did not. If other writers have appended since, the
 * outcome stays unknown. Rejects with `StorageFailure` (`corrupt`) if the log is damaged.
 */
async function planFromStored(
  transaction: WriteTransaction,
  logId: string,
  requests: readonly AppendRequest[],
  attempt: AppendPlan | undefined,
): Promise<AppendPlan> {
  const row = await transaction.objectStore('logs').get(logId)
  if (row === undefined) return resolveAttempt(attempt, undefined) ?? missingLog(logId, requests)
  const [last, takesTailRows] = await Promise.all([
    lastTailRow(transaction, logId, row),
    hasMarker(transaction, logId, row.revision),
  ])
  const state = logStateOf(row, last)
  const before = takesTailRows ? state : undefined
  const resolved = resolveAttempt(attempt, state.head.appendId)
  if (resolved !== undefined) return { ...resolved, after: before }
  const { accepted, refusals } = checkHeads(logId, requests, state.head)
  const plan = { logId, requests, refusals, before: state.head }
  if (accepted.length === 0) return { ...plan, after: before }
  // A damaged log takes no more appends.
  for (const page of [row.tail, last]) if (page !== undefined) readBlocks(logId, page)
  const tail = before && planTailInsert(logId, before, accepted)
  if (tail !== undefined) {
    if (isSameSchedule(state, tail.after)) return { ...plan, ...tail }
    return { ...plan, ...tail, rescheduled: reschedule(logId, row, row, tail.after) }
  }
  const log = (await readTailLog(transaction, logId))!
  const write = writeWithAppends(logId, foldTailRows(logId, log), accepted)
  return { ...plan, write: { ...write, over: row }, after: logStateOf(write.row) }
}

/**
 * Undefined if the attempt failed and has to be planned again. `appendId` identifies the latest append; other
 * writes, such as reclaiming, do not change it.
 */
function resolveAttempt(
  attempt: AppendPlan | undefined,
  appendId: string | undefined,
): AppendPlan | undefined {
  if (attempt === undefined) return undefined
  const { logId, requests, refusals, before, insert, write, after } = attempt
  if ((insert ?? write) === undefined || before === undefined || appendId === before.appendId)
    return undefined
  const plan = { logId, requests, before, after: undefined }
  if (appendId === after?.head.appendId) return { ...plan, refusals }
  const unknown = new StorageFailure('io', `lost the connection during an append to log ${logId}`, {
    nothingWritten: false,
  })
  return { ...plan, refusals: refusals.map((refusal) => refusal ?? unknown) }
}

function missingLog(logId: string, requests: readonly AppendRequest[]): AppendPlan {
  const { refusals } = checkHeads(logId, requests, undefined)
  return { logId, requests, refusals, before: undefined, after: undefined }
}

/** Accepts each request, in order, if the head is the expected one when its turn comes. */
function checkHeads(logId: string, requests: readonly AppendRequest[], before: Head | undefined) {
  const accepted: AppendRequest[] = []
  let head = before
  const refusals = requests.map((request) => {
    const conflict = appendConflict(logId, head, request.expected)
    if (conflict !== undefined) return conflict
    accepted.push(request)
    head = request.head
    return undefined
  })
  return { accepted, refusals }
}
