import {
  addedValue,
  alignDown,
  BY_DAY,
  MINUTE_SECONDS,
  STORED_BYTES,
  seriesName,
} from '../core/usage/resolutions.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import { idFrom, secureRandom } from '../runtime/ids.ts'
import type { StorageSession } from '../storage/contract.ts'
import { Additions, basinOf, logScope, pagesOf, storeUsage } from './documents.ts'
import { measureEach } from './measuring.ts'

/** Values of series by the start of their minutes. */
type BySeries = Map<string, Map<number, number>>

/**
 * Above this number, values count for the start of their day, so that a storage that fails for a long time
 * does not exhaust the memory.
 */
const VALUES_MAX = 100_000

/** Usage that is not stored yet, added up by scope, series and minute. */
export class PendingUsage {
  #scopes = new Map<string, BySeries>()
  #values = 0

  get isEmpty(): boolean {
    return this.#values === 0
  }

  /** `time` is in seconds. */
  add(scope: string, series: string, time: number, value: number): void {
    const start = alignDown(time, this.#values < VALUES_MAX ? MINUTE_SECONDS : BY_DAY.bucketSeconds)
    const bySeries: BySeries = this.#scopes.get(scope) ?? new Map()
    if (bySeries.size === 0) this.#scopes.set(scope, bySeries)
    const values = bySeries.get(series) ?? new Map<number, number>()
    if (values.size === 0) bySeries.set(series, values)
    const before = values.get(start)
    if (before === undefined) this.#values++
    values.set(start, addedValue(series, before, value))
  }

  /** Removes and returns everything, by scope. */
  take(): Map<string, BySeries> {
    const scopes = this.#scopes
    this.#scopes = new Map()
    this.#values = 0
    return scopes
  }
}

/** The operations that also succeed on a basin that does not exist. */
const QUERIES: ReadonlySet<string> = new Set([
  seriesName('basin-ops', 'basin-metrics'),
  seriesName('basin-ops', 'stream-metrics'),
])

const DOCUMENTS_PER_COMMIT = 100

interface Batch {
  readonly scopes: readonly string[]
  readonly additions: Additions
  /** Not from a seeded source: another run must not take its commits for those of this one. */
  readonly commit: string
}

/**
 * Stores recorded usage. Usage that cannot be stored is kept for a later flush. Must not run twice at a time.
 */
export class UsageFlush {
  readonly pending = new PendingUsage()
  readonly changedLogs: ChangedLogs
  readonly #context: UsageContext
  /** The part of the current flush that is not stored yet. */
  #unstored = new Map<string, BySeries>()
  /** The commit that failed last, to be repeated as it was: it may have taken effect. */
  #batch: Batch | undefined

  constructor(context: UsageContext) {
    this.#context = context
    this.changedLogs = new ChangedLogs(context.session)
  }

  get isDirty(): boolean {
    return this.#unstored.size > 0 || this.changedLogs.size > 0 || !this.pending.isEmpty
  }

  /**
   * Stores everything recorded so far, and the sizes of changed logs under `minute`, in seconds. Logs that
   * cannot be measured are reported after everything else is stored.
   */
  async run(minute: number): Promise<void> {
    const unmeasured = await this.changedLogs.store(minute)
    await this.#storeRest()
    this.#unstored = this.pending.take()
    await this.#storeRest()
    if (unmeasured !== undefined) this.#context.onBackgroundError(unmeasured.error)
  }

  async #storeRest(): Promise<void> {
    while (this.#unstored.size > 0) {
      this.#batch ??= await this.#nextBatch()
      const { scopes, additions, commit } = this.#batch
      await storeUsage(this.#context.session, additions, commit)
      for (const scope of scopes) this.#unstored.delete(scope)
      this.#batch = undefined
    }
  }

  /** All usage of a scope is in one commit, so that minutes, hours and days agree. */
  async #nextBatch(): Promise<Batch> {
    const scopes: string[] = []
    const additions = new Additions()
    for (const [scope, bySeries] of this.#unstored) {
      if (additions.byKey.size >= DOCUMENTS_PER_COMMIT) break
      scopes.push(scope)
      if (await this.#isOfMissingBasin(scope, bySeries)) continue
      for (const [series, values] of bySeries) {
        for (const [time, value] of values) additions.add(scope, series, time, value)
      }
    }
    return { scopes, additions, commit: idFrom(secureRandom) }
  }

  /** Metrics queries about basins that do not exist must not leave documents behind. */
  async #isOfMissingBasin(scope: string, bySeries: BySeries): Promise<boolean> {
    const basin = basinOf(scope)
    if (basin === undefined || [...bySeries.keys()].some((series) => !QUERIES.has(series))) return false
    return (await this.#context.session.get('basins', basin)) === undefined
  }
}

const LOGS_PER_PAGE = 30

/**
 * The logs whose size changed. Sizes are measured and stored page by page, which bounds the memory for any
 * number of logs. A log whose measurement fails or cannot be stored remains for the next flush.
 */
class ChangedLogs {
  readonly #session: StorageSession
  readonly #logIds = new Set<string>()

  constructor(session: StorageSession) {
    this.#session = session
  }

  get size(): number {
    return this.#logIds.size
  }

  add(logId: string): void {
    this.#logIds.add(logId)
  }

  /**
   * Stores the sizes of the logs under `minute`, in seconds. Resolves to the first failure, if any, which
   * does not prevent the measurement of other logs.
   */
  async store(minute: number): Promise<{ readonly error: unknown } | undefined> {
    let failure: { readonly error: unknown } | undefined
    for (const logIds of pagesOf([...this.#logIds], LOGS_PER_PAGE)) {
      const failures = await this.#storePage(logIds, minute)
      if (failures.length > 0) failure ??= { error: failures[0] }
      // The storage is probably unavailable.
      if (failures.length === logIds.length) break
    }
    return failure
  }

  /** Resolves to one error for each log that remains. */
  async #storePage(logIds: readonly string[], minute: number): Promise<readonly unknown[]> {
    // Removed first, so that logs that change during the measurement are measured again.
    for (const logId of logIds) this.#logIds.delete(logId)
    const { sizes, failures } = await measureEach(this.#session, logIds)
    for (const logId of failures.keys()) this.#logIds.add(logId)
    try {
      const additions = new Additions()
      for (const [logId, size] of sizes) {
        const exists = size > 0 || (await this.#mayExist(logId))
        if (exists) additions.add(logScope(logId), STORED_BYTES, minute, size)
      }
      await storeUsage(this.#session, additions, idFrom(secureRandom))
      return [...failures.values()]
    } catch (error) {
      for (const logId of logIds) this.#logIds.add(logId)
      return logIds.map(() => error)
    }
  }

  /** Distinguishes an empty log from a missing one, which has size 0 as well. */
  async #mayExist(logId: string): Promise<boolean> {
    const head = await this.#session.head(logId).catch(() => null)
    return head !== undefined
  }
}
