import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type AppendPlan, planAgain, planAppends } from './append-plan.ts'
import { writeAssuming } from './assumed-write.ts'
import type { Connection } from './connection.ts'
import { full } from './failures.ts'
import { putLog } from './put-log.ts'
import { RecentRows } from './recent-rows.ts'
import { isQuota, type Reserve } from './reserve.ts'
import type { StoreName } from './schema.ts'
import { type Durability, writeIn } from './transactions.ts'

/** Of the data in one transaction, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024

const STORES: readonly StoreName[] = ['logs', 'pages', 'parts', 'chores']

interface Entry {
  readonly request: AppendRequest
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Appends in groups: what comes while a transaction is under way shares the next one. Each log in it is a compare-and-set of its own.
 *
 * To a log whose row is known from the append before, a transaction does not wait for what it reads: it reads the row and writes in one go, and is
 * aborted when the row is another than was assumed. That is what makes an awaited append about as fast as a bare put.
 */
export class AppendWriter {
  readonly #connection: Connection
  readonly #reserve: Reserve
  readonly #durability: Durability
  readonly #onAppended: (requests: readonly AppendRequest[]) => void
  readonly #recent = new RecentRows()
  #waiting: Entry[] = []
  #isWriting = false

  /** `onAppended` is told of what became durable, log by log. What it throws changes nothing about that, and is ignored. */
  constructor(
    connection: Connection,
    reserve: Reserve,
    durability: Durability,
    onAppended: (requests: readonly AppendRequest[]) => void,
  ) {
    this.#connection = connection
    this.#reserve = reserve
    this.#durability = durability
    this.#onAppended = onAppended
  }

  append(request: AppendRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject })
      if (!this.#isWriting) void this.#writeAll()
    })
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    // What is asked for in the same turn belongs to the same group.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#write(this.#nextGroup())
    this.#isWriting = false
  }

  #nextGroup(): Entry[] {
    let bytes = 0
    const end = this.#waiting.findIndex(({ request }, index) => {
      bytes += request.block.data.length
      return bytes > GROUP_BYTES_MAX && index > 0
    })
    const count = end === -1 ? this.#waiting.length : end
    return this.#waiting.splice(0, count)
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const logs = byLog(entries)
    let plans: readonly AppendPlan[]
    try {
      // Else the next trim would find no space.
      if (this.#reserve.isSpent && !trims(entries) && !(await this.#reserve.restore())) throw full()
      const commit = () => this.#commit(logs)
      plans = await (entries.length === 1 && trims(entries) ? this.#reserve.use(commit) : commit())
    } catch (error) {
      for (const logId of logs.keys()) this.#recent.set(logId, undefined)
      // A small append has room where a large one has not, and one that trims where others have not; damage is that of one log.
      const isDamaged = StorageFailure.is(error) && error.kind === 'corrupt' && error.nothingWritten
      if (isQuota(error) && entries.length > 1) for (const entry of entries) await this.#write([entry])
      else if (isDamaged && logs.size > 1) for (const own of logs.values()) await this.#write(own)
      else for (const { reject } of entries) reject(error)
      return
    }
    for (const plan of plans) this.#settle(plan, logs.get(plan.logId)!)
  }

  #settle({ logId, refusals, write }: AppendPlan, entries: readonly Entry[]): void {
    this.#recent.set(logId, write?.row)
    const made: AppendRequest[] = []
    entries.forEach(({ request, resolve, reject }, index) => {
      const refusal = refusals[index]
      if (refusal !== undefined) {
        reject(refusal)
        return
      }
      made.push(request)
      resolve()
    })
    try {
      if (made.length > 0) this.#onAppended(made)
    } catch {
      // Others behind it are durable, too, and have to be told so.
    }
  }

  /** Resolves to what came of each log's appends, once it is durable. */
  #commit(logs: ReadonlyMap<string, readonly Entry[]>): Promise<readonly AppendPlan[]> {
    /** What was last tried: a connection that is lost does not tell whether it was done. */
    let tried: readonly AppendPlan[] | undefined
    return this.#connection.run(async (db) => {
      if (tried === undefined) {
        const plans = this.#plansOfRecent(logs)
        if (plans !== undefined) {
          const writing = writeAssuming(db, this.#durability, plans)
          tried = plans
          if (await writing) return plans
          // It was seen to be undone.
          tried = undefined
        }
      }
      return writeIn(db, STORES, this.#durability, async (transaction, raw) => {
        const store = transaction.objectStore('logs')
        const rows = await Promise.all([...logs.keys()].map((logId) => store.get(logId)))
        const plans = [...logs].map(([logId, entries], index) =>
          tried === undefined
            ? planAppends(logId, requestsOf(entries), rows[index])
            : planAgain(tried[index]!, rows[index]),
        )
        tried = plans
        for (const { logId, write } of plans) if (write !== undefined) putLog(raw, logId, write)
        return plans
      })
    })
  }

  /** Undefined unless the rows of all the logs are known. */
  #plansOfRecent(logs: ReadonlyMap<string, readonly Entry[]>): AppendPlan[] | undefined {
    const plans: AppendPlan[] = []
    for (const [logId, entries] of logs) {
      const row = this.#recent.get(logId)
      if (row === undefined) return undefined
      plans.push(planAppends(logId, requestsOf(entries), row))
    }
    return plans
  }
}

function byLog(entries: readonly Entry[]): Map<string, Entry[]> {
  const logs = new Map<string, Entry[]>()
  for (const entry of entries) {
    const own = logs.get(entry.request.logId)
    if (own === undefined) logs.set(entry.request.logId, [entry])
    else own.push(entry)
  }
  return logs
}

/** Whether one of them trims its log. */
function trims(entries: readonly Entry[]): boolean {
  return entries.some(({ request: { head } }) => head.trims.at(-1)?.at === head.appendedAt)
}

function requestsOf(entries: readonly Entry[]): AppendRequest[] {
  return entries.map(({ request }) => request)
}
