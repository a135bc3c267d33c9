import {
  addedValue,
  addSeries,
  BY_DAY,
  chunkOf,
  chunksBetween,
  keptFrom,
  pointsOf,
  RESOLUTIONS,
  type Resolution,
  type Series,
  STORED_BYTES,
  seriesName,
  type UsagePoint,
} from '../core/usage/resolutions.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { CatalogChange, StorageSession } from '../storage/contract.ts'
import { getDocument, putDocument } from '../storage/documents.ts'
import { StorageConflict } from '../storage/errors.ts'

/**
 * The documents of usage: one for each resolution, chunk and scope. A scope is the account, a basin or the
 * log of a stream. Persisted: keep stable.
 */

export const ACCOUNT = 'account'

export function basinScope(basin: string): string {
  return `basin\0${basin}`
}

export function logScope(logId: string): string {
  return `log\0${logId}`
}

/** Enough digits for the hours of 2^53 milliseconds. */
const CHUNK_DIGITS = 10

/** Sorts the documents of a resolution by time. Neither basin names nor log ids contain U+0000. */
export function usageKey({ interval }: Resolution, chunk: number, scope: string): string {
  return `${interval}\0${String(chunk).padStart(CHUNK_DIGITS, '0')}\0${scope}`
}

export function resolutionPrefix({ interval }: Resolution): string {
  return `${interval}\0`
}

interface UsageKeyParts {
  readonly chunk: number
  readonly scope: string
  readonly basin: string | undefined
  readonly logId: string | undefined
}

export function parseUsageKey(key: string): UsageKeyParts {
  const [, chunk, kind, name] = key.split('\0')
  return {
    chunk: Number(chunk),
    scope: name === undefined ? kind! : `${kind}\0${name}`,
    basin: kind === 'basin' ? name : undefined,
    logId: kind === 'log' ? name : undefined,
  }
}

/**
 * Above this number of documents, usage is recorded by day only, so that a storage that fails for a long time
 * does not exhaust the memory.
 */
const WAITING_DOCUMENTS_MAX = 100_000
const DOCUMENTS_PER_COMMIT = 100
const CONFLICTS_MAX = 20

export class UnstoredUsage {
  #documents = new Map<string, Record<string, Record<string, number>>>()

  /** Adds a value, or sets a measurement, in each of the resolutions. `time` is in seconds. */
  add(scope: string, series: string, time: number, value: number, resolutions = RESOLUTIONS): void {
    const isFull = this.#documents.size >= WAITING_DOCUMENTS_MAX
    for (const resolution of isFull ? [BY_DAY] : resolutions) {
      const chunk = chunkOf(time, resolution)
      const key = usageKey(resolution, chunk, scope)
      const document = this.#documents.get(key) ?? {}
      this.#documents.set(key, document)
      document[series] ??= {}
      const buckets = document[series]
      const bucket = Math.floor((time - chunk * resolution.chunkSeconds) / resolution.bucketSeconds)
      buckets[bucket] = addedValue(series, buckets[bucket], value)
    }
  }

  /**
   * Adds everything to the stored documents. What is not stored remains for the next call, as does a part
   * whose commit has an unknown outcome: it may count twice. Rejects with `transaction_conflict` if other
   * engines change the same documents 20 times in between.
   */
  async store(session: StorageSession): Promise<void> {
    const documents = this.#documents
    this.#documents = new Map()
    try {
      const additions = [...documents]
      for (let start = 0; start < additions.length; start += DOCUMENTS_PER_COMMIT) {
        const part = additions.slice(start, start + DOCUMENTS_PER_COMMIT)
        await addToDocuments(session, part)
        for (const [key] of part) documents.delete(key)
      }
    } catch (error) {
      for (const [key, series] of documents) {
        this.#documents.set(key, addSeries(series, this.#documents.get(key) ?? {}))
      }
      throw error
    }
  }
}

type Addition = readonly [key: string, series: Series]

async function addToDocuments(session: StorageSession, additions: readonly Addition[]): Promise<void> {
  for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
    const changes = await Promise.all(additions.map((addition) => changeOf(session, addition)))
    try {
      await session.commit(changes.flat())
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

/** The operations that also succeed on a basin that does not exist. */
const QUERIES: ReadonlySet<string> = new Set([
  seriesName('basin-ops', 'basin-metrics'),
  seriesName('basin-ops', 'stream-metrics'),
])

async function changeOf(session: StorageSession, [key, added]: Addition): Promise<CatalogChange[]> {
  const document = await getDocument(session, 'usage', key)
  if (document === undefined && Object.keys(added).every((series) => QUERIES.has(series))) {
    // Metrics queries about basins that do not exist must not leave documents behind.
    const basin = await getDocument(session, 'basins', parseUsageKey(key).basin!)
    if (basin === undefined) return []
  }
  const series = addSeries(document?.value.series ?? {}, added)
  return [putDocument('usage', key, { series }, document?.version ?? null)]
}

interface StoredChunk {
  readonly chunk: number
  readonly series: Series
}

/** Reads the usage of a scope in `[from, to)`. Chunks without usage are left out. */
export async function readChunks(
  session: StorageSession,
  scope: string,
  resolution: Resolution,
  from: number,
  to: number,
): Promise<readonly StoredChunk[]> {
  const chunks = chunksBetween(resolution, from, to)
  const keys = chunks.map((chunk) => usageKey(resolution, chunk, scope))
  const documents = await Promise.all(keys.map((key) => getDocument(session, 'usage', key)))
  return documents.flatMap((document, index) =>
    document === undefined ? [] : [{ chunk: chunks[index]!, series: document.value.series }],
  )
}

/**
 * Reads the measurements of stored bytes by the finest of the resolutions that is kept, in no order. Goes
 * back in time until there is one before `before`, but not to buckets that end at or before `since`.
 */
export async function readMeasurements(
  session: StorageSession,
  scope: string,
  resolutions: readonly Resolution[],
  { before, since, now }: { readonly before: number; readonly since: number; readonly now: number },
): Promise<UsagePoint[]> {
  const points: UsagePoint[] = []
  let end = now + 1
  for (const resolution of resolutions) {
    const start = Math.min(end, keptFrom(resolution, now))
    for (const { chunk, series } of await readChunks(session, scope, resolution, start, end)) {
      // The time of a point is the start of its bucket, but the value is the last one in the bucket.
      const isWanted = ([time]: UsagePoint) => time < end && time + resolution.bucketSeconds > since
      points.push(...pointsOf(series, STORED_BYTES, resolution, chunk).filter(isWanted))
    }
    if (points.some(([time]) => time < before)) break
    end = start
  }
  return points
}
