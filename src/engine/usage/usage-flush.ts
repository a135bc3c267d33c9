import { type Activity, addRun, type HoursRun } from '../../core/usage/activity.ts'
import { mergeSeries, seriesName } from '../../core/usage/series.ts'
import { HOURS, rolledUpInto, type TierChunk } from '../../core/usage/tiers.ts'
import type { EngineContext } from '../context.ts'
import { idFrom, secureRandom } from '../ids.ts'
import { changeDocuments } from './change-documents.ts'
import { ChangedLogs } from './changed-logs.ts'
import { storeMeasurements } from './measurements.ts'
import { PendingUsage, type UsageDelta } from './pending-usage.ts'
import {
  type ActivityDocument,
  activityKey,
  addWriter,
  basinScope,
  holdsCommit,
  NO_USAGE,
  scopeOf,
  type UsageDocument,
  usageJson,
  usageKey,
} from './usage-documents.ts'

/** What of an engine the usage metrics need. */
export type UsageEngine = Pick<EngineContext, 'settings' | 'session' | 'catalog'>

const DOCUMENTS_OF_COMMIT = 100

/** What can be done to a basin that does not exist. */
const ASKING: ReadonlySet<string> = new Set([
  seriesName('basin-ops', 'basin-metrics'),
  seriesName('basin-ops', 'stream-metrics'),
])

/**
 * Stores what was recorded. What cannot be stored is kept and stored by a later flush; nothing is added twice, not even after a commit whose outcome
 * is unknown: a commit that is made again is the same, and documents know which they hold.
 */
export class UsageFlush {
  readonly pending = new PendingUsage()
  readonly changedLogs: ChangedLogs
  readonly #engine: UsageEngine
  /** Never of a seeded source: the commits of another engine, or of an earlier run, must not pass for this one's. */
  readonly #engineId: string = idFrom(secureRandom)
  readonly #activity = new Map<string, HoursRun>()
  readonly #goneBasins = new Map<string, number>()
  /** The flush under way, without what of it is stored. Changes no more. */
  #deltas: readonly UsageDelta[] = []
  /** Of the next commit of them. */
  #number = 1
  /** Whether that commit was tried before: then it may have been made. */
  #isAgain = false

  constructor(engine: UsageEngine) {
    this.#engine = engine
    this.changedLogs = new ChangedLogs(engine.session)
  }

  get isDirty(): boolean {
    const { pending, changedLogs } = this
    const waiting = this.#deltas.length + changedLogs.size + this.#activity.size + this.#goneBasins.size
    return waiting > 0 || !pending.isEmpty
  }

  /** The basin had a stream in these hours. */
  markActive(basin: string, [first, last]: HoursRun): void {
    const known = this.#activity.get(basin)
    this.#activity.set(basin, known ? [Math.min(known[0], first), Math.max(known[1], last)] : [first, last])
  }

  /** From this time on, in seconds, there is no such basin. */
  markGone(basin: string, time: number): void {
    this.#goneBasins.set(basin, time)
  }

  /**
   * Stores everything that was recorded before; what logs hold is recorded under `minute`. Times in seconds. Not while it runs. Logs that cannot
   * be measured are reported; they keep nothing else from being stored.
   */
  async run(minute: number, now: number): Promise<void> {
    const unmeasured = await this.changedLogs.measure(minute)
    await this.#storeDeltas()
    this.#deltas = this.pending.take(now)
    await this.#storeDeltas()
    await this.#storeGone()
    await this.#storeActivity()
    if (unmeasured !== undefined) this.#engine.settings.onBackgroundError(unmeasured.error)
  }

  async #storeDeltas(): Promise<void> {
    while (this.#deltas.length > 0) {
      await this.#store(this.#deltas.slice(0, DOCUMENTS_OF_COMMIT))
      this.#deltas = this.#deltas.slice(DOCUMENTS_OF_COMMIT)
    }
  }

  async #store(deltas: readonly UsageDelta[]): Promise<void> {
    const isAgain = this.#isAgain
    this.#isAgain = true
    const isMissing = async (delta: UsageDelta) =>
      (await this.#isMeant(delta)) && !(isAgain && (await this.#isStored(delta)))
    const missing = await Promise.all(deltas.map(isMissing))
    const byKey = new Map(deltas.filter((_, index) => missing[index]).map((delta) => [delta.key, delta]))
    await changeDocuments(this.#engine.session, 'usage', [...byKey.keys()], (values) => {
      const changed = new Map()
      for (const [key, { series }] of byKey) {
        const { series: older, writers } =
          (values.get(key) as unknown as UsageDocument | undefined) ?? NO_USAGE
        // What an attempt that failed wrote may turn up as late as this.
        if (holdsCommit(writers, this.#engineId, this.#number)) continue
        const next = {
          series: mergeSeries(older, series),
          writers: addWriter(writers, this.#engineId, this.#number),
        }
        changed.set(key, usageJson(next))
      }
      return changed
    })
    this.#number++
    this.#isAgain = false
  }

  /** Asking for the metrics of names that do not exist leaves nothing behind. */
  async #isMeant({ scope, series }: UsageDelta): Promise<boolean> {
    const of = scopeOf(scope)
    if (of.kind !== 'basin' || Object.keys(series).some((name) => !ASKING.has(name))) return true
    return (await this.#engine.session.get('basins', of.id)) !== undefined
  }

  /** Whether it was stored, wherever it was rolled up into since. Looks in the order in which it moves, so as not to miss it. */
  async #isStored({ at, scope }: UsageDelta): Promise<boolean> {
    for (let place: TierChunk | undefined = at; place !== undefined; place = rolledUpInto(place)) {
      const document = await this.#engine.session.get('usage', usageKey(place, scope))
      const writers = (document?.value as unknown as UsageDocument | undefined)?.writers ?? []
      if (holdsCommit(writers, this.#engineId, this.#number)) return true
    }
    return false
  }

  /** What such a basin holds would else be told for ever as it was measured last. */
  async #storeGone(): Promise<void> {
    while (this.#goneBasins.size > 0) {
      const gone = [...this.#goneBasins].slice(0, DOCUMENTS_OF_COMMIT)
      const measurements = gone.map(([basin, time]) => ({ scope: basinScope(basin), time, bytes: 0 }))
      await storeMeasurements(this.#engine.session, measurements, HOURS)
      for (const [basin, time] of gone) {
        if (this.#goneBasins.get(basin) === time) this.#goneBasins.delete(basin)
      }
    }
  }

  async #storeActivity(): Promise<void> {
    const { session } = this.#engine
    while (this.#activity.size > 0) {
      const runs = new Map([...this.#activity].slice(0, DOCUMENTS_OF_COMMIT))
      const keyed = new Map([...runs].map(([basin, run]) => [activityKey(basin), run]))
      await changeDocuments(session, 'usage', [...keyed.keys()], (values) => {
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
