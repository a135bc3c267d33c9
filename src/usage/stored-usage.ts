import {
  chunksBefore,
  MINUTES,
  pointsOf,
  STORED_BYTES,
  type Tier,
  type TierChunk,
  type UsagePoint,
} from '../core/usage/tiers.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import type { StorageSession } from '../storage/contract.ts'
import { type StreamDocument, streamKey } from '../storage/documents.ts'
import { logScope, type UsageDocument, usageKey } from './documents.ts'

const CONCURRENT_READS = 16

interface StoredChunk extends TierChunk {
  readonly series: UsageDocument['series']
}

/** Reads the usage of a scope in the given chunks. Chunks without usage are omitted. */
export async function readChunks(
  session: StorageSession,
  scope: string,
  chunks: readonly TierChunk[],
): Promise<StoredChunk[]> {
  const found: StoredChunk[] = []
  for (const page of splitIntoPages(chunks, CONCURRENT_READS)) {
    const documents = await Promise.all(page.map((chunk) => session.get('usage', usageKey(chunk, scope))))
    for (const [index, document] of documents.entries()) {
      if (document === undefined) continue
      found.push({ ...page[index]!, series: (document.value as unknown as UsageDocument).series })
    }
  }
  return found
}

/** Selects measurements. Times are in seconds. */
interface MeasurementRange {
  /** The finest tier that has measurements of the scope. */
  readonly finest: Tier
  /** Measurements of buckets that end at or before this time are ignored. */
  readonly since: number
  /** Exclusive. */
  readonly to: number
  /** Stops reading further back once there is a measurement before this time. */
  readonly stopBefore: number
}

/** Reads the measurements in a range, in no particular order. */
export async function readMeasurements(
  session: StorageSession,
  scope: string,
  { finest, since, to, stopBefore }: MeasurementRange,
  now: number,
): Promise<UsagePoint[]> {
  const points: UsagePoint[] = []
  for (const page of splitIntoPages(chunksBefore(to, finest, now), CONCURRENT_READS)) {
    for (const chunk of await readChunks(session, scope, page)) {
      // The time of a point is the start of its bucket, but the value is the last one in the bucket.
      const measured = pointsOf(chunk.series, STORED_BYTES, chunk)
      points.push(...measured.filter(([time]) => time + chunk.tier.bucketSeconds > since))
    }
    if (points.some(([time]) => time < stopBefore)) break
  }
  return points
}

/** Reads the latest measurement of a scope; undefined if there is none. */
async function readLastMeasurement(
  session: StorageSession,
  scope: string,
  now: number,
): Promise<number | undefined> {
  const all = {
    finest: MINUTES,
    since: 0,
    to: Number.POSITIVE_INFINITY,
    stopBefore: Number.POSITIVE_INFINITY,
  }
  const points = await readMeasurements(session, scope, all, now)
  return points.sort(([a], [b]) => b - a)[0]?.[1]
}

/** The result of {@link measureEach}. */
interface Measured {
  /** Metered bytes by log id. */
  readonly sizes: ReadonlyMap<string, number>
  /** Errors by log id. */
  readonly failures: ReadonlyMap<string, unknown>
}

/** Measures logs. A log that cannot be measured does not affect the others. Never rejects. */
export async function measureEach(session: StorageSession, logIds: readonly string[]): Promise<Measured> {
  try {
    const sizes = await session.measure(logIds)
    return { sizes: new Map(logIds.map((logId, index) => [logId, sizes[index]!])), failures: new Map() }
  } catch {
    const sizes = new Map<string, number>()
    const failures = new Map<string, unknown>()
    const measureOne = async (logId: string) => {
      const [size] = await session.measure([logId])
      sizes.set(logId, size!)
    }
    const all = logIds.map((logId) => measureOne(logId).catch((error) => failures.set(logId, error)))
    await Promise.all(all)
    return { sizes, failures }
  }
}

/** Splits items into consecutive pages of at most `size`. */
export function* splitIntoPages<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

const STREAMS_PER_STEP = 256

/**
 * Adds up the stored bytes of a basin's streams, one page of streams at a time. A stream that cannot be
 * measured counts with its last stored measurement, and the first such failure is reported.
 */
export class BasinSize {
  /** Metered bytes of the streams measured so far. */
  bytes = 0
  /**
   * The time at which the oldest of these streams was created, in milliseconds; undefined if there are none.
   */
  since: number | undefined
  readonly #context: UsageContext
  readonly #prefix: string
  #after = ''
  #hasReported = false

  constructor(context: UsageContext, basin: string) {
    this.#context = context
    this.#prefix = streamKey(basin, '')
  }

  /**
   * Measures the next page. Resolves to whether more follow. After a rejection, the next call repeats the
   * page.
   */
  async step(): Promise<boolean> {
    const { session } = this.#context
    const range = { prefix: this.#prefix, after: this.#after, limit: STREAMS_PER_STEP }
    const streams = await session.list('streams', range)
    const documents = streams.map(({ value }) => value as unknown as StreamDocument)
    this.bytes += await this.#measure(documents.map(({ logId }) => logId))
    for (const { createdAt } of documents) this.since = Math.min(this.since ?? createdAt, createdAt)
    this.#after = streams.at(-1)?.key ?? this.#after
    return streams.length === STREAMS_PER_STEP
  }

  async #measure(logIds: readonly string[]): Promise<number> {
    const { session, onBackgroundError } = this.#context
    const { sizes, failures } = await measureEach(session, logIds)
    let bytes = 0
    for (const size of sizes.values()) bytes += size
    const now = Math.floor(this.#context.clock.now() / 1000)
    for (const logId of failures.keys()) {
      bytes += (await readLastMeasurement(session, logScope(logId), now)) ?? 0
    }
    const [failure] = failures.values()
    if (failures.size > 0 && !this.#hasReported) {
      this.#hasReported = true
      onBackgroundError(failure)
    }
    return bytes
  }
}
