import {
  type Activity,
  addActivity,
  coarsenActivity,
  hourOf,
  isSampled,
  mustRenewClaim,
  type Sampled,
  sampledHour,
  samplingState,
} from '../core/usage/sampling.ts'
import { alignDown, chunkAt, DAY_SECONDS, HOUR_SECONDS, HOURS } from '../core/usage/tiers.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import { lazyId } from '../runtime/ids.ts'
import type { Document, JsonValue, StorageSession } from '../storage/contract.ts'
import type { BasinDocument } from '../storage/documents.ts'
import {
  ACTIVITY_PREFIX,
  type ActivityDocument,
  activityKey,
  basinScope,
  changeDocuments,
  SAMPLED_KEY,
  usageJson,
  usageKey,
  withMeasurement,
} from './documents.ts'
import { BasinSize } from './stored-usage.ts'

const PAGE = 100

/** The sampling of all basins in one hour. */
interface SamplingPass {
  /** Hours since the Unix epoch. */
  readonly hour: number
  /** The time at which the lease was last claimed, or found claimed by another engine, in seconds. */
  claimedAt: number
  /** Listed basins that are not measured yet. */
  readonly basins: Document[]
  /** The last listed basin; null once all are listed. */
  basinsAfter: string | null
  size: BasinSize | undefined
  /** The last activity document whose resolution was reduced; null if none are left to reduce. */
  activityAfter: string | null
}

/**
 * Once an hour, records the size of every basin and whether it had a stream. Of the engines that share a
 * storage, the one that holds the lease does this. Once a day, reduces the resolution of old activity.
 */
export class Sampling {
  readonly #context: UsageContext
  readonly #lease: SamplingLease
  /** The last hour known to be sampled, by any engine. */
  #lastSampled = -1
  #sample: SamplingPass | undefined

  constructor(context: UsageContext) {
    this.#context = context
    this.#lease = new SamplingLease(context.session)
  }

  /**
   * Performs a bounded step. Resolves to whether more is left. After a rejection, the next step continues
   * there. If `isAwaited`, samples even if another engine holds the lease: it may have crashed, and a query
   * is waiting.
   */
  async step(isAwaited: boolean): Promise<boolean> {
    const hour = hourOf(this.#now())
    // A pass for an hour that has ended is abandoned: later measurements do not belong to it.
    if (this.#sample?.hour !== hour) this.#sample = await this.#begin(hour, isAwaited)
    if (this.#sample === undefined) return false
    if ((await this.#isStillDue(this.#sample)) && (await this.#continue(this.#sample))) return true
    await this.#lease.finish(hour)
    this.#sample = undefined
    this.#lastSampled = hour
    return false
  }

  async #begin(hour: number, isAwaited: boolean): Promise<SamplingPass | undefined> {
    if (isSampled(this.#lastSampled, hour)) return undefined
    const now = this.#now()
    const { state, last } = await this.#lease.claim(now, hour)
    if (state === 'done') this.#lastSampled = last
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

  /** Returns false if another engine finished the hour first. */
  async #isStillDue(sample: SamplingPass): Promise<boolean> {
    const now = this.#now()
    if (!mustRenewClaim(sample.claimedAt, now)) return true
    const { state } = await this.#lease.claim(now, sample.hour)
    sample.claimedAt = now
    return state !== 'done'
  }

  async #continue(sample: SamplingPass): Promise<boolean> {
    const basin = sample.basins[0]
    if (basin !== undefined) {
      sample.size ??= new BasinSize(this.#context, basin.key)
      if (await sample.size.step()) return true
      await this.#store(basin.value as unknown as BasinDocument, sample.size, sample.hour)
      sample.size = undefined
      sample.basins.shift()
      return true
    }
    if (sample.basinsAfter !== null) {
      const range = { prefix: '', after: sample.basinsAfter, limit: PAGE }
      sample.basins.push(...(await this.#context.session.list('basins', range)))
      sample.basinsAfter = sample.basins.at(-1)?.key ?? null
      return true
    }
    if (sample.activityAfter === null) return false
    sample.activityAfter = await this.#coarsenPage(sample.activityAfter)
    return sample.activityAfter !== null
  }

  async #store({ name, createdAt }: BasinDocument, { bytes, since }: BasinSize, hour: number): Promise<void> {
    const measured = sampledHour(this.#now())
    const at = chunkAt(measured * HOUR_SECONDS, HOURS)
    const sizeKey = usageKey(at, basinScope(name))
    const existed = createdAt < (measured + 1) * HOUR_SECONDS * 1000
    const keys = [...(existed ? [sizeKey] : []), ...(since === undefined ? [] : [activityKey(name)])]
    await changeDocuments(this.#context.session, 'usage', keys, (values) => {
      const changed = new Map<string, JsonValue>()
      for (const key of keys) {
        const value = values.get(key)
        if (key === sizeKey) {
          changed.set(key, withMeasurement(value, at, measured * HOUR_SECONDS, bytes))
        } else {
          const runs = (value as unknown as ActivityDocument | undefined)?.runs ?? []
          changed.set(key, usageJson({ runs: this.#withActivity(runs, since!, hour) }))
        }
      }
      return changed
    })
  }

  /** Adds the hours since the oldest existing stream was created. */
  #withActivity(runs: Activity, since: number, hour: number): Activity {
    const first = hourOf(Math.floor(since / 1000))
    return coarsenActivity(addActivity(runs, [first, Math.max(first, hour)]), this.#now())
  }

  /** Reduces the resolution of the next page of activity. Resolves to its last key, or null at the end. */
  async #coarsenPage(after: string): Promise<string | null> {
    const { session } = this.#context
    const page = await session.list('usage', { prefix: ACTIVITY_PREFIX, after, limit: PAGE })
    const keys = page.map(({ key }) => key)
    await changeDocuments(session, 'usage', keys, (values) => {
      const changed = new Map<string, JsonValue | null>()
      for (const [key, value] of values) {
        if (value === undefined) continue
        const { runs } = value as unknown as ActivityDocument
        const coarsened = coarsenActivity(runs, this.#now())
        if (coarsened.length === 0) changed.set(key, null)
        else if (JSON.stringify(coarsened) !== JSON.stringify(runs))
          changed.set(key, usageJson({ runs: coarsened }))
      }
      return changed
    })
    return page.length < PAGE ? null : keys.at(-1)!
  }

  #now(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

function dayOf(hour: number): number {
  return alignDown(hour * HOUR_SECONDS, DAY_SECONDS)
}

interface ClaimResult {
  /** `due` if this engine now holds the lease. */
  readonly state: ReturnType<typeof samplingState>
  /** The last sampled hour. */
  readonly last: number
}

const NEVER_SAMPLED: Sampled = { hour: -1 }

/** The lease that one of the engines of a storage holds while it samples the basins, kept in a document. */
class SamplingLease {
  readonly #session: StorageSession
  readonly #engineId = lazyId()

  constructor(session: StorageSession) {
    this.#session = session
  }

  /**
   * Acquires or renews the lease for an hour, unless it is sampled or another engine holds it. `now` is in
   * seconds.
   */
  async claim(now: number, hour: number): Promise<ClaimResult> {
    let claimed: ClaimResult = { state: 'due', last: NEVER_SAMPLED.hour }
    await this.#change((sampled) => {
      const state = samplingState(sampled, this.#engineId(), now)
      claimed = { state, last: sampled.hour }
      return state === 'due' ? { ...sampled, claim: { hour, by: this.#engineId(), at: now } } : undefined
    })
    return claimed
  }

  /** Records that all basins were sampled in an hour. */
  async finish(hour: number): Promise<void> {
    await this.#change((sampled) => {
      if (isSampled(sampled.hour, hour)) return undefined
      const { claim } = sampled
      return claim === undefined || claim.hour === hour ? { hour } : { hour, claim }
    })
  }

  async #change(change: (sampled: Sampled) => Sampled | undefined): Promise<void> {
    await changeDocuments(this.#session, 'settings', [SAMPLED_KEY], (values) => {
      const changed = change((values.get(SAMPLED_KEY) as unknown as Sampled | undefined) ?? NEVER_SAMPLED)
      return new Map(changed === undefined ? [] : [[SAMPLED_KEY, usageJson(changed)]])
    })
  }
}
