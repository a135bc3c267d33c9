import { type Activity, addRun, hourOf, thinActivity } from '../../core/usage/activity.ts'
import { isClaimOld, isSampled, sampledHour } from '../../core/usage/sampled.ts'
import { chunkAt } from '../../core/usage/series.ts'
import { alignDown, DAY_SECONDS, HOUR_SECONDS, HOURS } from '../../core/usage/tiers.ts'
import type { Document, JsonValue } from '../../storage/contract.ts'
import type { BasinDocument } from '../documents.ts'
import { BasinSize } from './basin-size.ts'
import { changeDocuments } from './change-documents.ts'
import { SampledHours } from './sampled-hours.ts'
import {
  ACTIVITY_PREFIX,
  type ActivityDocument,
  activityKey,
  basinScope,
  usageJson,
  usageKey,
  withMeasurement,
} from './usage-documents.ts'
import type { UsageEngine } from './usage-flush.ts'

const PAGE = 100

/** One look at all basins. */
interface Sample {
  /** In which it is made, since the Unix epoch. */
  readonly hour: number
  /** When the hour was claimed, or was found to be another's; seconds. */
  claimedAt: number
  /** Basins that were listed and not measured yet, and the last that was listed; null once all were. */
  readonly basins: Document[]
  basinsAfter: string | null
  size: BasinSize | undefined
  /** The last activity that was looked at; null when it is not to be, once it was. */
  activityAfter: string | null
}

/**
 * Once an hour, takes what every basin holds, and that it had a stream. Of several engines on a storage one does it: who is the first to say so, or
 * another when that one is not heard of any more. Once a day, makes old activity coarser.
 */
export class Sampling {
  readonly #engine: UsageEngine
  readonly #hours: SampledHours
  /** The last hour of which this engine knows that it is seen to, by itself or another. */
  #hour = -1
  #sample: Sample | undefined

  constructor(engine: UsageEngine) {
    this.#engine = engine
    this.#hours = new SampledHours(engine.session)
  }

  /**
   * A bounded step; resolves to whether more is left. When it rejects, the next one goes on there. Who waits for it does not wait for another engine
   * that is at it, for that one may be gone.
   */
  async step(isAwaited: boolean): Promise<boolean> {
    const hour = hourOf(this.#now())
    // What is measured from now on says nothing of an hour that is over.
    if (this.#sample?.hour !== hour) this.#sample = await this.#begin(hour, isAwaited)
    if (this.#sample === undefined) return false
    if ((await this.#isWanted(this.#sample)) && (await this.#continue(this.#sample))) return true
    await this.#hours.finish(hour)
    this.#sample = undefined
    this.#hour = hour
    return false
  }

  async #begin(hour: number, isAwaited: boolean): Promise<Sample | undefined> {
    if (isSampled(this.#hour, hour)) return undefined
    const now = this.#now()
    const { state, last } = await this.#hours.claim(now, hour)
    if (state === 'done') this.#hour = last
    if (state === 'done' || (state === 'claimed' && !isAwaited)) return undefined
    return {
      hour,
      claimedAt: now,
      basins: [],
      basinsAfter: '',
      size: undefined,
      activityAfter: dayOf(last) === dayOf(hour) ? null : ACTIVITY_PREFIX,
    }
  }

  /** False when another was done first. */
  async #isWanted(sample: Sample): Promise<boolean> {
    const now = this.#now()
    if (!isClaimOld(sample.claimedAt, now)) return true
    const { state } = await this.#hours.claim(now, sample.hour)
    sample.claimedAt = now
    return state !== 'done'
  }

  async #continue(sample: Sample): Promise<boolean> {
    const basin = sample.basins[0]
    if (basin !== undefined) {
      sample.size ??= new BasinSize(this.#engine, basin.key)
      if (await sample.size.step()) return true
      await this.#store(basin.value as unknown as BasinDocument, sample.size, sample.hour)
      sample.size = undefined
      sample.basins.shift()
      return true
    }
    if (sample.basinsAfter !== null) {
      const range = { prefix: '', after: sample.basinsAfter, limit: PAGE }
      sample.basins.push(...(await this.#engine.session.list('basins', range)))
      sample.basinsAfter = sample.basins.at(-1)?.key ?? null
      return true
    }
    if (sample.activityAfter === null) return false
    sample.activityAfter = await this.#thin(sample.activityAfter)
    return sample.activityAfter !== null
  }

  async #store({ name, createdAt }: BasinDocument, { bytes, since }: BasinSize, hour: number): Promise<void> {
    const measured = sampledHour(this.#now())
    const at = chunkAt(measured * HOUR_SECONDS, HOURS)
    const sizeKey = usageKey(at, basinScope(name))
    const existed = createdAt < (measured + 1) * HOUR_SECONDS * 1000
    const keys = [...(existed ? [sizeKey] : []), ...(since === undefined ? [] : [activityKey(name)])]
    await changeDocuments(this.#engine.session, 'usage', keys, (values) => {
      const changed = new Map<string, JsonValue>()
      for (const key of keys) {
        const value = values.get(key)
        if (key === sizeKey) {
          changed.set(key, withMeasurement(value, at, measured * HOUR_SECONDS, bytes))
        } else {
          const runs = (value as unknown as ActivityDocument | undefined)?.runs ?? []
          changed.set(key, usageJson({ runs: this.#active(runs, since!, hour) }))
        }
      }
      return changed
    })
  }

  /** The oldest stream that there is was there all the time. */
  #active(runs: Activity, since: number, hour: number): Activity {
    const first = hourOf(Math.floor(since / 1000))
    return thinActivity(addRun(runs, [first, Math.max(first, hour)]), this.#now())
  }

  /** Makes some activity coarser that is after a key; resolves to the last key, null at the end. */
  async #thin(after: string): Promise<string | null> {
    const { session } = this.#engine
    const page = await session.list('usage', { prefix: ACTIVITY_PREFIX, after, limit: PAGE })
    const keys = page.map(({ key }) => key)
    await changeDocuments(session, 'usage', keys, (values) => {
      const changed = new Map<string, JsonValue | null>()
      for (const [key, value] of values) {
        if (value === undefined) continue
        const { runs } = value as unknown as ActivityDocument
        const thinned = thinActivity(runs, this.#now())
        if (thinned.length === 0) changed.set(key, null)
        else if (JSON.stringify(thinned) !== JSON.stringify(runs))
          changed.set(key, usageJson({ runs: thinned }))
      }
      return changed
    })
    return page.length < PAGE ? null : keys.at(-1)!
  }

  #now(): number {
    return Math.floor(this.#engine.settings.clock.now() / 1000)
  }
}

function dayOf(hour: number): number {
  return alignDown(hour * HOUR_SECONDS, DAY_SECONDS)
}
