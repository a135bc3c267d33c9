import {
  ACTIVE,
  BY_DAY,
  BY_HOUR,
  BY_MINUTE,
  chunkOf,
  HOUR_SECONDS,
  hourOf,
  keptFrom,
  MINUTE_SECONDS,
  RESOLUTIONS,
  type Resolution,
  STORED_BYTES,
} from '../core/usage/resolutions.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import { idFrom, secureRandom } from '../runtime/ids.ts'
import { getDocument, listDocuments, putDocument } from '../storage/documents.ts'
import {
  Additions,
  basinScope,
  logOf,
  parseUsageKey,
  resolutionPrefix,
  storeUsage,
  usageKey,
} from './documents.ts'
import { measureBasin } from './measuring.ts'

/** Each has two documents, which fit into one commit. */
const BASINS_PER_PAGE = 50
const DOCUMENTS_PER_PAGE = 100
/** A measurement up to this long after an hour's end counts for that hour. */
const PUNCTUAL_SECONDS = 5 * MINUTE_SECONDS

/**
 * The hourly work: samples the size of every basin and whether it has a stream, and deletes usage that is no
 * longer kept. Engines that share a storage leave it to the first that does it; nothing goes wrong if two do.
 */
export class UsageUpkeep {
  readonly #context: UsageContext
  /** The last hour known to be sampled, by any engine. */
  #doneInHour = -1
  #work: AsyncGenerator<void> | undefined

  constructor(context: UsageContext) {
    this.#context = context
  }

  /**
   * Performs a bounded step. Resolves to whether more is left. After a rejection, the next step begins the
   * work of the hour again.
   */
  async step(): Promise<boolean> {
    const work = this.#work ?? this.#workOfHour()
    this.#work = work
    let isDone: boolean | undefined = true
    try {
      isDone = (await work.next()).done
    } finally {
      if (isDone && this.#work === work) this.#work = undefined
    }
    return !isDone
  }

  async *#workOfHour(): AsyncGenerator<void> {
    const { session } = this.#context
    const hour = hourOf(this.#now())
    if (isSampled(this.#doneInHour, hour)) return
    const sampled = await getDocument(session, 'settings', 'usage-sampled')
    if (sampled === undefined || !isSampled(sampled.value.hour, hour)) {
      yield* this.#sampleBasins()
      for (const resolution of RESOLUTIONS) yield* this.#deleteOld(resolution)
      await session.commit([putDocument('settings', 'usage-sampled', { hour })])
    }
    this.#doneInHour = hour
  }

  async *#sampleBasins(): AsyncGenerator<void> {
    const { session } = this.#context
    let after = ''
    for (;;) {
      const basins = await listDocuments(session, 'basins', { prefix: '', after, limit: BASINS_PER_PAGE })
      const additions = new Additions()
      for (const { value } of basins) {
        const { bytes, hasStreams } = yield* measureBasin(this.#context, value.name)
        const scope = basinScope(value.name)
        const now = this.#now()
        const hour = hourOf(now - PUNCTUAL_SECONDS) * HOUR_SECONDS
        const existed = value.createdAt < (hour + HOUR_SECONDS) * 1000
        if (existed) additions.add(scope, STORED_BYTES, hour, bytes, [BY_HOUR, BY_DAY])
        if (hasStreams) additions.add(scope, ACTIVE, now, 1, [BY_HOUR, BY_DAY])
      }
      await storeUsage(session, additions, idFrom(secureRandom))
      if (basins.length < BASINS_PER_PAGE) return
      after = basins.at(-1)!.key
      yield
    }
  }

  async *#deleteOld(resolution: Resolution): AsyncGenerator<void> {
    const { session } = this.#context
    const range = { prefix: resolutionPrefix(resolution), after: '', limit: DOCUMENTS_PER_PAGE }
    const kept = chunkOf(keptFrom(resolution, this.#now()), resolution)
    for (;;) {
      const page = await listDocuments(session, 'usage', range)
      const old = page.map(({ key }) => key).filter((key) => parseUsageKey(key).chunk < kept)
      const removed = new Set(old)
      if (resolution === BY_MINUTE) for (const key of old) await this.#addOfMissingLog(removed, key)
      if (removed.size === 0) return
      await session.commit([...removed].map((key) => ({ kind: 'delete', collection: 'usage', key })))
      yield
    }
  }

  /** Adds the hours and days in which a log was measured that no longer exists, which no query can name. */
  async #addOfMissingLog(removed: Set<string>, minuteKey: string): Promise<void> {
    const { chunk, scope } = parseUsageKey(minuteKey)
    const logId = logOf(scope)
    if (logId === undefined || (await this.#context.session.head(logId)) !== undefined) return
    const time = chunk * BY_MINUTE.chunkSeconds
    for (const coarser of [BY_HOUR, BY_DAY]) removed.add(usageKey(coarser, chunkOf(time, coarser), scope))
  }

  #now(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

/**
 * Whether an hour is sampled. Tolerates small clock differences, but not an hour far ahead: that came from a
 * wrong clock and would prevent sampling until then.
 */
function isSampled(last: number, hour: number): boolean {
  return last >= hour && last <= hour + 1
}
