import { appendedBytes } from '../../../src/storage/block-sizes.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { hasNewTrim } from '../../../src/storage/heads.ts'
import { RecentMap } from '../../../src/storage/ordered-list.ts'
import {
  type AppendPlan,
  appendWithRead,
  type GroupAttempt,
  type LogAppends,
  optimisticInsert,
  planOptimistically,
} from './append-transaction.ts'
import type { DatabaseConnection, TransactionDurability } from './connection.ts'
import { quotaExceeded } from './failures.ts'
import { isQuotaFailure, type SpaceReserve } from './space.ts'
import type { LogState } from './tail-rows.ts'

/** The most data per transaction, in bytes, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024
/** Each cached state takes a few hundred bytes. */
const RECENT_LOGS_MAX = 256

type Entry = PendingItem<AppendRequest>

/**
 * Requests that arrive during a transaction share the next one. Each log in a group is a separate
 * compare-and-set.
 *
 * A small append to a recently used log is an optimistic insert of one tail row, which reads nothing first
 * and makes an awaited append about as fast as a bare `put`. All others read the log, and mostly rewrite its
 * row.
 */
export class AppendWriter {
  readonly #connection: DatabaseConnection
  readonly #reserve: SpaceReserve
  readonly #durability: TransactionDurability
  readonly #onAppended: (requests: readonly AppendRequest[]) => void
  /** The logs that this session appended to most recently. */
  readonly #recent = new RecentMap<string, LogState>(RECENT_LOGS_MAX)
  readonly #group = new GroupCommit<AppendRequest>(
    (entries) => this.#write(entries),
    appendedBytes,
    GROUP_BYTES_MAX,
  )

  /** Calls `onAppended` with the durable appends to each log, and ignores what it throws. */
  constructor(
    connection: DatabaseConnection,
    reserve: SpaceReserve,
    durability: TransactionDurability,
    onAppended: (requests: readonly AppendRequest[]) => void,
  ) {
    this.#connection = connection
    this.#reserve = reserve
    this.#durability = durability
    this.#onAppended = onAppended
  }

  append(request: AppendRequest): Promise<void> {
    return this.#group.add(request)
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const logs = groupByLog(entries)
    let plans: readonly AppendPlan[]
    try {
      // Without the reserve, later trims would find no space.
      if (this.#reserve.isSpent && !hasTrim(entries) && !(await this.#reserve.restore()))
        throw quotaExceeded()
      const commit = () => this.#commit(logs)
      plans = await (entries.length === 1 && hasTrim(entries) ? this.#reserve.use(commit) : commit())
    } catch (error) {
      for (const logId of logs.keys()) this.#recent.delete(logId)
      // On its own, a small append or a trim may find space, and damage affects one log only.
      const isDamaged = StorageFailure.is(error) && error.kind === 'corrupt' && error.nothingWritten
      if (isQuotaFailure(error) && entries.length > 1) for (const entry of entries) await this.#write([entry])
      else if (isDamaged && logs.size > 1) for (const own of logs.values()) await this.#write(own)
      else for (const { reject } of entries) reject(error)
      return
    }
    for (const plan of plans) this.#resolve(plan, logs.get(plan.logId)!)
  }

  #resolve({ logId, refusals, after }: AppendPlan, entries: readonly Entry[]): void {
    if (after === undefined) this.#recent.delete(logId)
    else this.#recent.set(logId, after)
    const appended: AppendRequest[] = []
    entries.forEach(({ item, resolve, reject }, index) => {
      const refusal = refusals[index]
      if (refusal !== undefined) {
        reject(refusal)
        return
      }
      appended.push(item)
      resolve()
    })
    try {
      if (appended.length > 0) this.#onAppended(appended)
    } catch {
      // Later entries are durable as well and must still be resolved.
    }
  }

  #commit(entries: ReadonlyMap<string, readonly Entry[]>): Promise<readonly AppendPlan[]> {
    const attempt: GroupAttempt = { plans: undefined, stale: undefined }
    return this.#connection.run(async (db) => {
      const isFirst = attempt.plans === undefined
      let logs = [...entries].map(([logId, own]) => this.#logAppends(logId, own, isFirst))
      const [{ optimistic }] = logs as [LogAppends]
      // With several logs, some inserts might count and others not.
      if (optimistic !== undefined && logs.length === 1) {
        const inserted = optimisticInsert(db, this.#durability, optimistic.insert)
        attempt.plans = [optimistic]
        attempt.stale = optimistic.insert
        if (await inserted) return attempt.plans
        attempt.plans = undefined
        logs = logs.map((log) => ({ ...log, optimistic: undefined }))
      }
      return appendWithRead(db, this.#durability, logs, attempt)
    })
  }

  #logAppends(logId: string, entries: readonly Entry[], isFirst: boolean): LogAppends {
    const requests = entries.map(({ item }) => item)
    const recent = isFirst ? this.#recent.get(logId) : undefined
    return { logId, requests, optimistic: recent && planOptimistically(logId, requests, recent) }
  }
}

function groupByLog(entries: readonly Entry[]): Map<string, Entry[]> {
  const logs = new Map<string, Entry[]>()
  for (const entry of entries) {
    const own = logs.get(entry.item.logId)
    if (own === undefined) logs.set(entry.item.logId, [entry])
    else own.push(entry)
  }
  return logs
}

function hasTrim(entries: readonly Entry[]): boolean {
  return entries.some(({ item }) => hasNewTrim(item.head))
}
