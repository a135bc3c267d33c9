import { type Activity, addRun, hourOf, thinActivity } from '../../core/usage/activity.ts'
import { bucketOf, chunkAt, mergeSeries, STORED_BYTES } from '../../core/usage/series.ts'
import { alignDown, DAY_SECONDS, HOUR_SECONDS, HOURS } from '../../core/usage/tiers.ts'
import type { Document, JsonValue } from '../../storage/contract.ts'
import { StorageConflict } from '../../storage/errors.ts'
import type { BasinDocument } from '../documents.ts'
import { BasinSize } from './basin-size.ts'
import { changeDocuments } from './change-documents.ts'
import {
  ACTIVITY_PREFIX,
  type ActivityDocument,
  activityKey,
  basinScope,
  SAMPLED_KEY,
  type SampledDocument,
  type UsageDocument,
  usageJson,
  usageKey,
} from './usage-documents.ts'
import type { UsageEngine } from './usage-flush.ts'

const PAGE = 100

/** One look at all basins. */
interface Sample {
  /** The hour that has just begun, since the Unix epoch. */
  readonly hour: number
  /** Basins that were listed and not measured yet, and the last that was listed; null once all were. */
  readonly basins: Document[]
  basinsAfter: string | null
  size: BasinSize | undefined
  /** The last activity that was looked at; null when it is not to be, once it was. */
  activityAfter: string | null
}

/**
 * Once an hour, takes what every basin holds, and that it had a stream. Of several engines on a storage one does it: who is the first to say so.
 * Once a day, makes old activity coarser.
 */
export class Sampling {
  readonly #engine: UsageEngine
  /** The last hour of which this engine knows that it is seen to, by itself or another. */
  #hour = -1
  #sample: Sample | undefined

  constructor(engine: UsageEngine) {
    this.#engine = engine
  }

  /** A bounded step; resolves to whether more is left. When it rejects, the next one goes on there. */
  async step(): Promise<boolean> {
    if (this.#sample === undefined) this.#sample = await this.#begin()
    if (this.#sample === undefined) return false
    if (await this.#continue(this.#sample)) return true
    this.#sample = undefined
    return false
  }

  async #begin(): Promise<Sample | undefined> {
    const hour = hourOf(this.#now())
    if (hour <= this.#hour) return undefined
    const document = await this.#engine.session.get('settings', SAMPLED_KEY)
    const last = (document?.value as unknown as SampledDocument | undefined)?.hour ?? -1
    const isMine = hour > last && (await this.#claim(hour, document))
    this.#hour = hour
    if (!isMine) return undefined
    const isNewDay = alignDown(last * HOUR_SECONDS, DAY_SECONDS) < alignDown(hour * HOUR_SECONDS, DAY_SECONDS)
    return {
      hour,
      basins: [],
      basinsAfter: '',
      size: undefined,
      activityAfter: isNewDay ? ACTIVITY_PREFIX : null,
    }
  }

  async #claim(hour: number, document: Document | undefined): Promise<boolean> {
    const put = { kind: 'put', collection: 'settings', key: SAMPLED_KEY } as const
    const expect = document?.version ?? null
    try {
      await this.#engine.session.commit([{ ...put, value: usageJson({ hour }), expect }])
      return true
    } catch (error) {
      if (StorageConflict.is(error)) return false
      throw error
    }
  }

  async #continue(sample: Sample): Promise<boolean> {
    const basin = sample.basins[0]
    if (basin !== undefined) {
      sample.size ??= new BasinSize(this.#engine.session, basin.key)
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

  /** What a basin holds at the beginning of an hour is what it held at the end of the hour before, if it existed then. */
  async #store({ name, createdAt }: BasinDocument, { bytes, since }: BasinSize, hour: number): Promise<void> {
    const end = hour * HOUR_SECONDS
    const at = chunkAt(end - 1, HOURS)
    const sizeKey = usageKey(at, basinScope(name))
    const measured = { [STORED_BYTES]: { [bucketOf(end - 1, at)]: bytes } }
    const keys = [
      ...(createdAt < end * 1000 ? [sizeKey] : []),
      ...(since === undefined ? [] : [activityKey(name)]),
    ]
    await changeDocuments(this.#engine.session, keys, (values) => {
      const changed = new Map<string, JsonValue>()
      for (const key of keys) {
        if (key === sizeKey) {
          const document = values.get(key) as unknown as UsageDocument | undefined
          const { series, writers } = document ?? { series: {}, writers: [] }
          changed.set(key, usageJson({ series: mergeSeries(series, measured), writers }))
        } else {
          const runs = (values.get(key) as unknown as ActivityDocument | undefined)?.runs ?? []
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
    await changeDocuments(session, keys, (values) => {
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
