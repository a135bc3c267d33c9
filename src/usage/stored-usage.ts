import { pointsOf, STORED_BYTES } from '../core/usage/series.ts'
import { chunksBefore, MINUTES, type Tier, type TierChunk, type UsagePoint } from '../core/usage/tiers.ts'
import type { StorageSession } from '../storage/contract.ts'
import { type UsageDocument, usageKey } from './documents.ts'

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
  for (const page of chunksOf(chunks, CONCURRENT_READS)) {
    const documents = await Promise.all(page.map((chunk) => session.get('usage', usageKey(chunk, scope))))
    for (const [index, document] of documents.entries()) {
      if (document === undefined) continue
      found.push({ ...page[index]!, series: (document.value as unknown as UsageDocument).series })
    }
  }
  return found
}

/** Selects measurements. Times are in seconds. */
export interface MeasurementRange {
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
  for (const page of chunksOf(chunksBefore(to, finest, now), CONCURRENT_READS)) {
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
export async function readLastMeasurement(
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
export interface Measured {
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
export function* chunksOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
