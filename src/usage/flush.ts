import { type Activity, addActivity, type HourRange } from '../core/usage/sampling.ts'
import { HOURS, MINUTES, mergeSeries, rolledUpInto, seriesName, type TierChunk } from '../core/usage/tiers.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import { lazyId } from '../runtime/ids.ts'
import type { StorageSession } from '../storage/contract.ts'
import {
  type ActivityDocument,
  activityKey,
  addWriter,
  basinScope,
  changeDocuments,
  EMPTY_USAGE,
  includesCommit,
  logScope,
  storeMeasurements,
  type UsageDocument,
  usageJson,
  usageKey,
  usageScopeOf,
} from './documents.ts'
import { PendingUsage, type UsageDelta } from './pending-usage.ts'
import { measureEach, splitIntoPages } from './stored-usage.ts'

const DOCUMENTS_PER_COMMIT = 100

/** The operations that also succeed on a basin that does not exist. */
const QUERY_SERIES: ReadonlySet<string> = new Set([
  seriesName('basin-ops', 'basin-metrics'),
  seriesName('basin-ops', 'stream-metrics'),
])

/**
 * Stores recorded usage. Usage that cannot be stored is kept for a later flush. A commit of unknown outcome
 * is retried unchanged, and each document lists the commits that it includes, so that no usage is added
 * twice.
 */
export class UsageFlush {
  readonly pending = new PendingUsage()
  readonly changedLogs: ChangedLogs
  readonly #context: UsageContext
  /**
   * The id of this engine. It does not come from a seeded source, so that commits of another engine, or of an
   * earlier run, are not taken for those of this one.
   */
  readonly #engineId = lazyId()
  readonly #activity = new Map<string, HourRange>()
  readonly #deletedBasins = new Map<string, number>()
  /**
   * The part of the current flush that is not stored yet. Nothing is added to it, so that a retry repeats the
   * same commit.
   */
  #deltas: readonly UsageDelta[] = []
  /** Number of the next commit. */
  #commitNumber = 1
  /** Whether that commit was attempted before and may have taken effect. */
  #isRetry = false

  constructor(context: UsageContext) {
    this.#context = context
    this.changedLogs = new ChangedLogs(context.session)
  }

  get isDirty(): boolean {
    const { pending, changedLogs } = this
    const unstored = this.#deltas.length + changedLogs.size + this.#activity.size + this.#deletedBasins.size
    return unstored > 0 || !pending.isEmpty
  }

  /** Records that the basin had a stream in these hours. */
  markActive(basin: string, [first, last]: HourRange): void {
    const known = this.#activity.get(basin)
    this.#activity.set(basin, known ? [Math.min(known[0], first), Math.max(known[1], last)] : [first, last])
  }

  /** Records that the basin was deleted. `time` is in seconds. */
  markDeleted(basin: string, time: number): void {
    this.#deletedBasins.set(basin, time)
  }

  /**
   * Stores everything recorded so far, and the sizes of changed logs under `minute`. Times are in seconds.
   * Must not be called while it runs. Logs that cannot be measured are reported after everything else is
   * stored.
   */
  async run(minute: number, now: number): Promise<void> {
    const unmeasured = await this.changedLogs.measure(minute)
    await this.#storeDeltas()
    this.#deltas = this.pending.take(now)
    await this.#storeDeltas()
    await this.#storeDeletedBasins()
    await this.#storeActivity()
    if (unmeasured !== undefined) this.#context.onBackgroundError(unmeasured.error)
  }

  async #storeDeltas(): Promise<void> {
    while (this.#deltas.length > 0) {
      await this.#store(this.#deltas.slice(0, DOCUMENTS_PER_COMMIT))
      this.#deltas = this.#deltas.slice(DOCUMENTS_PER_COMMIT)
    }
  }

  async #store(deltas: readonly UsageDelta[]): Promise<void> {
    const isRetry = this.#isRetry
    this.#isRetry = true
    const isMissing = async (delta: UsageDelta) =>
      (await this.#shouldStore(delta)) && !(isRetry && (await this.#isStored(delta)))
    const missing = await Promise.all(deltas.map(isMissing))
    const byKey = new Map(deltas.filter((_, index) => missing[index]).map((delta) => [delta.key, delta]))
    await changeDocuments(this.#context.session, 'usage', [...byKey.keys()], (values) => {
      const changed = new Map()
      for (const [key, { series }] of byKey) {
        const { series: older, writers } =
          (values.get(key) as unknown as UsageDocument | undefined) ?? EMPTY_USAGE
        // The write of an earlier, failed attempt may take effect as late as this.
        if (includesCommit(writers, this.#engineId(), this.#commitNumber)) continue
        const next = {
          series: mergeSeries(older, series),
          writers: addWriter(writers, this.#engineId(), this.#commitNumber),
        }
        changed.set(key, usageJson(next))
      }
      return changed
    })
    this.#commitNumber++
    this.#isRetry = false
  }

  /** Metrics queries about basins that do not exist must not leave documents behind. */
  async #shouldStore({ scope, series }: UsageDelta): Promise<boolean> {
    const of = usageScopeOf(scope)
    if (of.kind !== 'basin' || Object.keys(series).some((name) => !QUERY_SERIES.has(name))) return true
    return (await this.#context.session.get('basins', of.id)) !== undefined
  }

  /**
   * Whether a delta was stored, and perhaps rolled up since. Follows the order of the roll-up, so as not to
   * miss it.
   */
  async #isStored({ at, scope }: UsageDelta): Promise<boolean> {
    for (let chunk: TierChunk | undefined = at; chunk !== undefined; chunk = rolledUpInto(chunk)) {
      const document = await this.#context.session.get('usage', usageKey(chunk, scope))
      const writers = (document?.value as unknown as UsageDocument | undefined)?.writers ?? []
      if (includesCommit(writers, this.#engineId(), this.#commitNumber)) return true
    }
    return false
  }

  /** Stores a final measurement of 0: otherwise queries would report the last measurement forever. */
  async #storeDeletedBasins(): Promise<void> {
    while (this.#deletedBasins.size > 0) {
      const page = [...this.#deletedBasins].slice(0, DOCUMENTS_PER_COMMIT)
      const measurements = page.map(([basin, time]) => ({ scope: basinScope(basin), time, bytes: 0 }))
      await storeMeasurements(this.#context.session, measurements, HOURS)
      for (const [basin, time] of page) {
        if (this.#deletedBasins.get(basin) === time) this.#deletedBasins.delete(basin)
      }
    }
  }

  async #storeActivity(): Promise<void> {
    const { session } = this.#context
    while (this.#activity.size > 0) {
      const runs = new Map([...this.#activity].slice(0, DOCUMENTS_PER_COMMIT))
      const keyed = new Map([...runs].map(([basin, run]) => [activityKey(basin), run]))
      await changeDocuments(session, 'usage', [...keyed.keys()], (values) => {
        const changed = new Map()
        for (const [key, run] of keyed) {
          const activity: Activity = (values.get(key) as unknown as ActivityDocument | undefined)?.runs ?? []
          changed.set(key, usageJson({ runs: addActivity(activity, run) }))
        }
        return changed
      })
      for (const [basin, run] of runs) if (this.#activity.get(basin) === run) this.#activity.delete(basin)
    }
  }
}

const LOGS_PER_PAGE = 100

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
   * Measures the logs and stores their sizes under `minute`, in seconds. Resolves to the first failure, if
   * any, which does not prevent the measurement of other logs.
   */
  async measure(minute: number): Promise<{ readonly error: unknown } | undefined> {
    let failure: { readonly error: unknown } | undefined
    for (const logIds of splitIntoPages([...this.#logIds], LOGS_PER_PAGE)) {
      const failures = await this.#measurePage(logIds, minute)
      if (failures.length > 0) failure ??= { error: failures[0] }
      // The storage is probably unavailable.
      if (failures.length === logIds.length) break
    }
    return failure
  }

  /** Resolves to one error for each log that remains. */
  async #measurePage(logIds: readonly string[], minute: number): Promise<readonly unknown[]> {
    // Removed first, so that logs that change during the measurement are measured again.
    for (const logId of logIds) this.#logIds.delete(logId)
    const { sizes, failures } = await measureEach(this.#session, logIds)
    for (const logId of failures.keys()) this.#logIds.add(logId)
    try {
      const exist = await Promise.all([...sizes].map(([logId, size]) => size > 0 || this.#mayExist(logId)))
      const measured = [...sizes].filter((_, index) => exist[index])
      const measurements = measured.map(([logId, bytes]) => ({ scope: logScope(logId), time: minute, bytes }))
      await storeMeasurements(this.#session, measurements, MINUTES)
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
