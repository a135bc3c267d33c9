import { type Activity, addRun, type HoursRun } from '../../core/usage/activity.ts'
import { mergeSeries, STORED_BYTES, seriesName } from '../../core/usage/series.ts'
import type { EngineContext } from '../context.ts'
import { changeDocuments } from './change-documents.ts'
import { PendingUsage, type UsageDelta } from './pending-usage.ts'
import {
  type ActivityDocument,
  activityKey,
  addWriter,
  holdsFlush,
  logScope,
  scopeOf,
  type UsageDocument,
  usageJson,
} from './usage-documents.ts'

/** What of an engine the usage metrics need. */
export type UsageEngine = Pick<EngineContext, 'settings' | 'session' | 'catalog'>

const LOGS_OF_PAGE = 256
const DOCUMENTS_OF_COMMIT = 100

/** What can be done to a basin that does not exist. */
const ASKING: ReadonlySet<string> = new Set([
  seriesName('basin-ops', 'basin-metrics'),
  seriesName('basin-ops', 'stream-metrics'),
])

/**
 * Stores what was recorded. What cannot be stored is kept and stored by a later flush; nothing is added twice, not even after a commit whose outcome
 * is unknown: a flush that is made again is the same, and documents know which they hold.
 */
export class UsageFlush {
  readonly pending = new PendingUsage()
  /** What of them is stored is to be measured. */
  readonly changedLogs = new Set<string>()
  readonly #engine: UsageEngine
  readonly #engineId: string
  readonly #activity = new Map<string, HoursRun>()
  /** The flush under way, without what of it is stored. Changes no more. */
  #deltas: readonly UsageDelta[] = []
  #number = 0

  constructor(engine: UsageEngine) {
    this.#engine = engine
    this.#engineId = engine.settings.newId()
  }

  get isDirty(): boolean {
    return (
      !this.pending.isEmpty || this.#deltas.length > 0 || this.changedLogs.size > 0 || this.#activity.size > 0
    )
  }

  /** The basin had a stream in these hours. */
  markActive(basin: string, [first, last]: HoursRun): void {
    const known = this.#activity.get(basin)
    this.#activity.set(basin, known ? [Math.min(known[0], first), Math.max(known[1], last)] : [first, last])
  }

  /** Stores everything that was recorded before; what is stored is recorded under `minute`. Times in seconds. Not while it runs. */
  async run(minute: number, now: number): Promise<void> {
    let failure: { readonly error: unknown } | undefined
    try {
      await this.#measureLogs(minute)
    } catch (error) {
      // A log that cannot be measured does not keep anything else from being stored.
      failure = { error }
    }
    await this.#storeDeltas()
    this.#deltas = this.pending.take(now)
    this.#number++
    await this.#storeDeltas()
    await this.#storeActivity()
    if (failure !== undefined) throw failure.error
  }

  async #measureLogs(minute: number): Promise<void> {
    const { session } = this.#engine
    const logIds = [...this.changedLogs]
    for (let start = 0; start < logIds.length; start += LOGS_OF_PAGE) {
      const page = logIds.slice(start, start + LOGS_OF_PAGE)
      for (const logId of page) this.changedLogs.delete(logId)
      try {
        const sizes = await session.measure(page)
        for (const [index, logId] of page.entries()) {
          const size = sizes[index]!
          // A log that does not exist measures 0 as well.
          if (size === 0 && (await session.head(logId)) === undefined) continue
          this.pending.add(logScope(logId), STORED_BYTES, minute, size)
        }
      } catch (error) {
        for (const logId of page) this.changedLogs.add(logId)
        throw error
      }
    }
  }

  async #storeDeltas(): Promise<void> {
    while (this.#deltas.length > 0) {
      await this.#store(this.#deltas.slice(0, DOCUMENTS_OF_COMMIT))
      this.#deltas = this.#deltas.slice(DOCUMENTS_OF_COMMIT)
    }
  }

  async #store(deltas: readonly UsageDelta[]): Promise<void> {
    const meant = await Promise.all(deltas.map((delta) => this.#isMeant(delta)))
    const byKey = new Map(deltas.filter((_, index) => meant[index]).map((delta) => [delta.key, delta]))
    await changeDocuments(this.#engine.session, [...byKey.keys()], (values) => {
      const changed = new Map()
      for (const [key, { series }] of byKey) {
        const document = values.get(key) as unknown as UsageDocument | undefined
        const { series: older, writers } = document ?? { series: {}, writers: [] }
        if (holdsFlush(writers, this.#engineId, this.#number)) continue
        const next = {
          series: mergeSeries(older, series),
          writers: addWriter(writers, this.#engineId, this.#number),
        }
        changed.set(key, usageJson(next))
      }
      return changed
    })
  }

  /** Asking for the metrics of names that do not exist leaves nothing behind. */
  async #isMeant({ scope, series }: UsageDelta): Promise<boolean> {
    const of = scopeOf(scope)
    if (of.kind !== 'basin' || Object.keys(series).some((name) => !ASKING.has(name))) return true
    return (await this.#engine.session.get('basins', of.id)) !== undefined
  }

  async #storeActivity(): Promise<void> {
    const { session } = this.#engine
    while (this.#activity.size > 0) {
      const runs = new Map([...this.#activity].slice(0, DOCUMENTS_OF_COMMIT))
      const keyed = new Map([...runs].map(([basin, run]) => [activityKey(basin), run]))
      await changeDocuments(session, [...keyed.keys()], (values) => {
        const changed = new Map()
        for (const [key, run] of keyed) {
          const activity: Activity = (values.get(key) as unknown as ActivityDocument | undefined)?.runs ?? []
          changed.set(key, usageJson({ runs: addRun(activity, run) }))
        }
        return changed
      })
      for (const [basin, run] of runs) if (this.#activity.get(basin) === run) this.#activity.delete(basin)
    }
  }
}
