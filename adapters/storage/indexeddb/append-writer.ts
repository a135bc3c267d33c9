import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type AppendPlan, planAssuming } from './append-plan.ts'
import type { Attempt, LogAppends } from './append-reading.ts'
import { addAssuming } from './assumed-add.ts'
import type { Connection } from './connection.ts'
import { afterAttempt, full } from './failures.ts'
import { RecentLogs } from './recent-logs.ts'
import { isQuota, type Reserve } from './reserve.ts'
import type { Durability } from './transactions.ts'

/** Of the data in one transaction, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024

interface Entry {
  readonly request: AppendRequest
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Appends in groups: what comes while a transaction is under way shares the next one. Each log in it is a compare-and-set of its own.
 *
 * A small append to a log that is known from the append before is one `add` behind the log's row, which waits for nothing that is read: that makes an
 * awaited append about as fast as a bare put. All others read the log, and mostly write its row anew, with code that is loaded late.
 */
export class AppendWriter {
  readonly #connection: Connection
  readonly #reserve: Reserve
  readonly #durability: Durability
  readonly #loadRest: () => Promise<typeof import('./rest.ts')>
  readonly #onAppended: (requests: readonly AppendRequest[]) => void
  readonly #recent = new RecentLogs()
  #waiting: Entry[] = []
  #isWriting = false

  /** `onAppended` is told of what became durable, log by log. What it throws changes nothing about that, and is ignored. */
  constructor(
    connection: Connection,
    reserve: Reserve,
    durability: Durability,
    loadRest: () => Promise<typeof import('./rest.ts')>,
    onAppended: (requests: readonly AppendRequest[]) => void,
  ) {
    this.#connection = connection
    this.#reserve = reserve
    this.#durability = durability
    this.#loadRest = loadRest
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

  #settle({ logId, refusals, after }: AppendPlan, entries: readonly Entry[]): void {
    this.#recent.set(logId, after)
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
  #commit(entries: ReadonlyMap<string, readonly Entry[]>): Promise<readonly AppendPlan[]> {
    const attempt: Attempt = { plans: undefined, leftOver: undefined }
    return this.#connection.run(async (db) => {
      const isFirst = attempt.plans === undefined
      let logs = [...entries].map(([logId, own]) => this.#logAppends(logId, own, isFirst))
      const [{ assumed }] = logs as [LogAppends]
      // Of several logs, some might be as they are assumed to be, and others not.
      if (assumed !== undefined && logs.length === 1) {
        const adding = addAssuming(db, this.#durability, assumed.added)
        attempt.plans = [assumed]
        attempt.leftOver = assumed.added
        if (await adding) return attempt.plans
        // It was seen to be of no account.
        attempt.plans = undefined
        logs = logs.map((log) => ({ ...log, assumed: undefined }))
      }
      const { appendReading } = await this.#codeAfter(attempt)
      return appendReading(db, this.#durability, logs, attempt)
    })
  }

  #logAppends(logId: string, entries: readonly Entry[], isFirst: boolean): LogAppends {
    const requests = entries.map(({ request }) => request)
    const recent = isFirst ? this.#recent.get(logId) : undefined
    return { logId, requests, assumed: recent && planAssuming(logId, requests, recent) }
  }

  async #codeAfter(attempt: Attempt): Promise<typeof import('./rest.ts')> {
    try {
      return await this.#loadRest()
    } catch (error) {
      throw attempt.plans !== undefined && StorageFailure.is(error) ? afterAttempt(error) : error
    }
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
