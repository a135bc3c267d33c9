import {
  ACTIVE,
  alignDown,
  BY_DAY,
  BY_HOUR,
  BY_MINUTE,
  chunkOf,
  HOUR_SECONDS,
  keptFrom,
  MINUTE_SECONDS,
  RESOLUTIONS,
  type Resolution,
  STORED_BYTES,
} from '../core/usage/resolutions.ts'
import type { UsageContext } from '../engine/usage.ts'
import type { StorageSession } from '../storage/contract.ts'
import { documentPages, getDocument, putDocument, streamKey } from '../storage/documents.ts'
import { basinScope, parseUsageKey, resolutionPrefix, UnstoredUsage, usageKey } from './usage-store.ts'

const BASINS_PER_PAGE = 50
const STREAMS_PER_PAGE = 256
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

  constructor(context: UsageContext) {
    this.#context = context
  }

  /** Does what is due, in bounded steps. */
  async *run(): AsyncGenerator<void> {
    const { session } = this.#context
    const hour = Math.floor(this.#now() / HOUR_SECONDS)
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
    for await (const basins of documentPages(session, 'basins', '', BASINS_PER_PAGE)) {
      const usage = new UnstoredUsage()
      for (const { value } of basins) {
        const scope = basinScope(value.name)
        let bytes = 0
        let hasStreams = false
        for await (const pageBytes of streamBytes(session, value.name)) {
          bytes += pageBytes
          hasStreams = true
          yield
        }
        const now = this.#now()
        const hour = alignDown(now - PUNCTUAL_SECONDS, HOUR_SECONDS)
        const existed = value.createdAt < (hour + HOUR_SECONDS) * 1000
        if (existed) usage.add(scope, STORED_BYTES, hour, bytes, [BY_HOUR, BY_DAY])
        if (hasStreams) usage.add(scope, ACTIVE, now, 1, [BY_HOUR, BY_DAY])
      }
      await usage.store(session)
      yield
    }
  }

  async *#deleteOld(resolution: Resolution): AsyncGenerator<void> {
    const { session } = this.#context
    const kept = chunkOf(keptFrom(resolution, this.#now()), resolution)
    const prefix = resolutionPrefix(resolution)
    for await (const page of documentPages(session, 'usage', prefix, DOCUMENTS_PER_PAGE)) {
      const old = page.map(({ key }) => key).filter((key) => parseUsageKey(key).chunk < kept)
      if (old.length === 0) return
      const removed = new Set(old)
      if (resolution === BY_MINUTE) for (const key of old) await this.#addOfMissingLog(removed, key)
      await session.commit([...removed].map((key) => ({ kind: 'delete', collection: 'usage', key })))
      yield
    }
  }

  /** Adds the hours and days in which a log was measured that no longer exists, which no query can name. */
  async #addOfMissingLog(removed: Set<string>, minuteKey: string): Promise<void> {
    const { chunk, scope, logId } = parseUsageKey(minuteKey)
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

/** The stored bytes of a basin's streams, added up by page. There is no page without streams. */
export async function* streamBytes(session: StorageSession, basin: string): AsyncGenerator<number, void> {
  for await (const streams of documentPages(session, 'streams', streamKey(basin, ''), STREAMS_PER_PAGE)) {
    const sizes = await session.measure(streams.map(({ value }) => value.logId))
    yield sizes.reduce((sum, size) => sum + size, 0)
  }
}
