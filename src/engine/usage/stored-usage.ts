import { pointsOf, STORED_BYTES } from '../../core/usage/series.ts'
import { chunksBefore, MINUTES, type Tier, type TierChunk } from '../../core/usage/tiers.ts'
import type { MetricPoint } from '../../model/metrics.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { pagesOf } from './pages.ts'
import { type UsageDocument, usageKey } from './usage-documents.ts'

const DOCUMENTS_AT_ONCE = 16

interface StoredChunk extends TierChunk {
  readonly series: UsageDocument['series']
}

/** What is stored of a scope in some chunks, without those of which there is nothing. */
export async function readChunks(
  session: StorageSession,
  scope: string,
  chunks: readonly TierChunk[],
): Promise<StoredChunk[]> {
  const found: StoredChunk[] = []
  for (const some of pagesOf(chunks, DOCUMENTS_AT_ONCE)) {
    const documents = await Promise.all(some.map((chunk) => session.get('usage', usageKey(chunk, scope))))
    for (const [index, document] of documents.entries()) {
      if (document === undefined) continue
      found.push({ ...some[index]!, series: (document.value as unknown as UsageDocument).series })
    }
  }
  return found
}

export interface MeasurementRange {
  /** The finest tier that has measurements of the scope. */
  readonly finest: Tier
  /** What was measured earlier than this is of no interest. */
  readonly since: number
  readonly to: number
  /** None before the latest one before this is needed. */
  readonly enough: number
}

/** Measurements before a time, without order; at least the latest before another time, if there is one. All in seconds. */
export async function readMeasurements(
  session: StorageSession,
  scope: string,
  { finest, since, to, enough }: MeasurementRange,
  now: number,
): Promise<MetricPoint[]> {
  const points: MetricPoint[] = []
  for (const some of pagesOf(chunksBefore(to, finest, now), DOCUMENTS_AT_ONCE)) {
    for (const chunk of await readChunks(session, scope, some)) {
      // A bucket's time is its beginning, its value that of its end.
      const measured = pointsOf(chunk.series, STORED_BYTES, chunk)
      points.push(...measured.filter(([time]) => time + chunk.tier.bucketSeconds > since))
    }
    if (points.some(([time]) => time < enough)) break
  }
  return points
}

/** What a scope held when it was measured last; undefined: it never was. */
export async function readLastMeasurement(
  session: StorageSession,
  scope: string,
  now: number,
): Promise<number | undefined> {
  const all = { finest: MINUTES, since: 0, to: Number.POSITIVE_INFINITY, enough: Number.POSITIVE_INFINITY }
  const points = await readMeasurements(session, scope, all, now)
  return points.sort(([a], [b]) => b - a)[0]?.[1]
}
