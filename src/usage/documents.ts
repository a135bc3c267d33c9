import {
  addedValue,
  addSeries,
  chunkOf,
  chunksBetween,
  pointsOf,
  RESOLUTIONS,
  type Resolution,
  type Series,
  STORED_BYTES,
  spansBefore,
  type UsagePoint,
} from '../core/usage/resolutions.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { StorageSession } from '../storage/contract.ts'
import { getDocument, putDocument } from '../storage/documents.ts'
import { StorageConflict } from '../storage/errors.ts'

/**
 * The documents of usage: one for each scope, resolution and chunk. A scope is the account, a basin or the
 * log of a stream. Persisted: keep stable.
 */

export const ACCOUNT = 'account'

export function basinScope(basin: string): string {
  return `basin\0${basin}`
}

export function logScope(logId: string): string {
  return `log\0${logId}`
}

/** The name of the basin that a scope is about, if any. */
export function basinOf(scope: string): string | undefined {
  return scope.startsWith('basin\0') ? scope.slice('basin\0'.length) : undefined
}

/** The id of the log that a scope is about, if any. */
export function logOf(scope: string): string | undefined {
  return scope.startsWith('log\0') ? scope.slice('log\0'.length) : undefined
}

/** Enough digits for the hours of 2^53 milliseconds. */
const CHUNK_DIGITS = 10

/** Sorts the documents of a resolution by time. Neither basin names nor log ids contain U+0000. */
export function usageKey(resolution: Resolution, chunk: number, scope: string): string {
  return `${resolutionPrefix(resolution)}${String(chunk).padStart(CHUNK_DIGITS, '0')}\0${scope}`
}

export function resolutionPrefix({ interval }: Resolution): string {
  return `${interval}\0`
}

/** The chunk and the scope of the key of a usage document. */
export function parseUsageKey(key: string): { readonly chunk: number; readonly scope: string } {
  const [, chunk, ...scope] = key.split('\0')
  return { chunk: Number(chunk), scope: scope.join('\0') }
}

/** Usage to add to documents, by their keys. */
export class Additions {
  readonly byKey = new Map<string, Record<string, Record<string, number>>>()

  /** Adds a value, or sets a measurement, in each of the resolutions. `time` is in seconds. */
  add(scope: string, series: string, time: number, value: number, resolutions = RESOLUTIONS): void {
    for (const resolution of resolutions) {
      const chunk = chunkOf(time, resolution)
      const key = usageKey(resolution, chunk, scope)
      const document = this.byKey.get(key) ?? {}
      this.byKey.set(key, document)
      document[series] ??= {}
      const buckets = document[series]
      const bucket = Math.floor((time - chunk * resolution.chunkSeconds) / resolution.bucketSeconds)
      buckets[bucket] = addedValue(series, buckets[bucket], value)
    }
  }
}

const CONFLICTS_MAX = 20

/**
 * Adds usage to documents in one commit. A commit of unknown outcome can be repeated with the same id: it is
 * not counted twice, unless other engines have meanwhile changed all of its documents. Rejects with
 * `transaction_conflict` if other engines change them 20 times in between.
 */
export async function storeUsage(
  session: StorageSession,
  { byKey }: Additions,
  commit: string,
): Promise<void> {
  const keys = [...byKey.keys()]
  if (keys.length === 0) return
  for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
    const documents = await Promise.all(keys.map((key) => getDocument(session, 'usage', key)))
    if (documents.some((document) => document?.value.commit === commit)) return
    const changes = keys.map((key, index) => {
      const document = documents[index]
      const series = addSeries(document?.value.series ?? {}, byKey.get(key)!)
      return putDocument('usage', key, { series, commit }, document?.version ?? null)
    })
    try {
      await session.commit(changes)
      return
    } catch (error) {
      if (!StorageConflict.is(error)) throw error
    }
  }
  throw new HeadwaterError(
    'transaction_conflict',
    'other engines keep changing the usage documents; try again',
  )
}

interface StoredChunk {
  readonly chunk: number
  readonly series: Series
}

const CONCURRENT_READS = 16

/** Reads the usage of a scope in the given chunks. Chunks without usage are omitted. */
export async function readChunks(
  session: StorageSession,
  scope: string,
  resolution: Resolution,
  chunks: readonly number[],
): Promise<StoredChunk[]> {
  const found: StoredChunk[] = []
  for (const page of pagesOf(chunks, CONCURRENT_READS)) {
    const keys = page.map((chunk) => usageKey(resolution, chunk, scope))
    const documents = await Promise.all(keys.map((key) => getDocument(session, 'usage', key)))
    for (const [index, document] of documents.entries()) {
      if (document !== undefined) found.push({ chunk: page[index]!, series: document.value.series })
    }
  }
  return found
}

/** Selects measurements. Times are in seconds. */
interface MeasurementRange {
  /** The finest resolution that has measurements of the scope. */
  readonly finest: Resolution
  /** Measurements of buckets that end at or before this time are ignored. */
  readonly since: number
  /** Exclusive. */
  readonly to: number
  /** Stops reading further back once there is a measurement before this time. */
  readonly stopBefore: number
}

/** Reads the measurements of stored bytes in a range, in no particular order. */
export async function readMeasurements(
  session: StorageSession,
  scope: string,
  { finest, since, to, stopBefore }: MeasurementRange,
  now: number,
): Promise<UsagePoint[]> {
  const points: UsagePoint[] = []
  for (const { resolution, ...span } of spansBefore(to, finest, now)) {
    const chunks = chunksBetween(resolution, span.from, span.to).reverse()
    for (const page of pagesOf(chunks, CONCURRENT_READS)) {
      for (const { chunk, series } of await readChunks(session, scope, resolution, page)) {
        const measured = pointsOf(series, STORED_BYTES, resolution, chunk)
        // The time of a point is the start of its bucket, but the value is the last one in the bucket.
        const isWanted = ([time]: UsagePoint) => time < span.to && time + resolution.bucketSeconds > since
        points.push(...measured.filter(isWanted))
      }
      if (points.some(([time]) => time < stopBefore)) return points
    }
  }
  return points
}

/** Splits items into consecutive pages of at most `size`. */
export function* pagesOf<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
