import type { Activity, Sampled } from '../core/usage/sampling.ts'
import {
  bucketOf,
  chunkAt,
  mergeSeries,
  type SeriesOfChunk,
  STORED_BYTES,
  TIERS,
  type Tier,
  type TierChunk,
} from '../core/usage/tiers.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { CatalogChange, Collection, Document, JsonValue, StorageSession } from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'

/**
 * The documents of the collection `usage`, and one of `settings`. Persisted: members may be added, but never
 * renamed or given another meaning.
 */

/** Key: {@link usageKey}. A scope has at most 119 of them at any time. */
export interface UsageDocument {
  readonly series: SeriesOfChunk
  /** See {@link addWriter}. */
  readonly writers: Writers
}

/** Key: {@link activityKey}. */
export interface ActivityDocument {
  readonly runs: Activity
}

/** Collection `settings`, key {@link SAMPLED_KEY}. */
type SampledDocument = Sampled

export const SAMPLED_KEY = 'usage-sampled'

/**
 * The last commit of each engine that a document includes, the most recent last. An engine commits one at a
 * time.
 */
export type Writers = readonly (readonly [engineId: string, commit: number])[]

const WRITERS_MAX = 16

/**
 * Records a commit in the document that it changes, so that a commit of unknown outcome can be retried
 * without counting twice. Only the most recent writers are kept: no engine retries a commit after that many
 * others.
 */
export function addWriter(writers: Writers, engineId: string, commit: number): Writers {
  const otherWriters = writers.filter(([id]) => id !== engineId)
  return [...otherWriters.slice(-(WRITERS_MAX - 1)), [engineId, commit]]
}

export function includesCommit(writers: Writers, engineId: string, commit: number): boolean {
  return writers.some(([id, last]) => id === engineId && last >= commit)
}

/** The commits of a document after another document was added to it. */
export function mergeWriters(writers: Writers, added: Writers): Writers {
  const missing = added.filter(([id, commit]) => !includesCommit(writers, id, commit))
  return missing.reduce((merged, [id, commit]) => addWriter(merged, id, commit), writers)
}

/** Adds a measurement of stored bytes to the document of a chunk. `time` is in seconds. */
export function withMeasurement(
  document: JsonValue | undefined,
  at: TierChunk,
  time: number,
  bytes: number,
): JsonValue {
  const { series, writers } = (document as unknown as UsageDocument | undefined) ?? EMPTY_USAGE
  const measured = { [STORED_BYTES]: { [bucketOf(time, at)]: bytes } }
  return usageJson({ series: mergeSeries(series, measured), writers })
}

export const EMPTY_USAGE: UsageDocument = { series: {}, writers: [] }

export const ACCOUNT = 'account'

export function basinScope(basin: string): string {
  return `basin\0${basin}`
}

export function logScope(logId: string): string {
  return `log\0${logId}`
}

export type Scope = { readonly kind: 'account' } | { readonly kind: 'basin' | 'log'; readonly id: string }

export function usageScopeOf(scope: string): Scope {
  const [kind, id] = scope.split('\0')
  return kind === 'basin' || kind === 'log' ? { kind, id: id! } : { kind: 'account' }
}

/** Enough digits for the hours of 2^53 milliseconds. */
const CHUNK_DIGITS = 10

/** Sorts the documents of a tier by time. Neither basin names nor log ids contain U+0000. */
export function usageKey({ tier, chunk }: TierChunk, scope: string): string {
  return `${tierPrefix(tier)}${String(chunk).padStart(CHUNK_DIGITS, '0')}\0${scope}`
}

export function tierPrefix(tier: Tier): string {
  return `${tier.name}\0`
}

/** A chunk of usage of one scope. */
export interface ScopeChunk {
  readonly at: TierChunk
  readonly scope: string
}

/** The inverse of {@link usageKey}. */
export function parseUsageKey(key: string): ScopeChunk {
  const [tierName, chunk, ...scope] = key.split('\0')
  const tier = TIERS.find(({ name }) => name === tierName)!
  return { at: { tier, chunk: Number(chunk) }, scope: scope.join('\0') }
}

export const ACTIVITY_PREFIX = 'active\0'

export function activityKey(basin: string): string {
  return ACTIVITY_PREFIX + basin
}

/** Documents are plain JSON by construction. */
export function usageJson(document: UsageDocument | ActivityDocument | SampledDocument): JsonValue {
  return document as unknown as JsonValue
}

const CONFLICTS_MAX = 20

/** New values by key; null deletes a document. Documents of other keys stay as they are. */
type NewValues = ReadonlyMap<string, JsonValue | null>

/**
 * Reads documents of a collection and changes them in one commit. If another engine changes one of them in
 * between, reads again and calls `change` again. Keys are distinct. Rejects with `transaction_conflict` after
 * 20 attempts.
 */
export async function changeDocuments(
  session: StorageSession,
  collection: Collection,
  keys: readonly string[],
  change: (values: ReadonlyMap<string, JsonValue | undefined>) => NewValues,
): Promise<void> {
  for (let attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
    const found = await Promise.all(keys.map((key) => session.get(collection, key)))
    const documents = new Map(keys.map((key, index) => [key, found[index]]))
    const values = new Map(keys.map((key, index) => [key, found[index]?.value]))
    const changes = [...change(values)].flatMap(([key, value]) =>
      toChange(collection, key, value, documents.get(key)),
    )
    if (changes.length === 0) return
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

function toChange(
  collection: Collection,
  key: string,
  value: JsonValue | null,
  document: Document | undefined,
): CatalogChange[] {
  if (value !== null) return [{ kind: 'put', collection, key, value, expect: document?.version ?? null }]
  return document === undefined ? [] : [{ kind: 'delete', collection, key, expect: document.version }]
}

/** The stored bytes of a scope at a time. */
export interface Measurement {
  readonly scope: string
  /** The time in seconds. */
  readonly time: number
  readonly bytes: number
}

/** Stores measurements of distinct scopes in one commit. Idempotent. */
export async function storeMeasurements(
  session: StorageSession,
  measurements: readonly Measurement[],
  tier: Tier,
): Promise<void> {
  const byKey = new Map(
    measurements.map((measurement) => [
      usageKey(chunkAt(measurement.time, tier), measurement.scope),
      measurement,
    ]),
  )
  await changeDocuments(session, 'usage', [...byKey.keys()], (values) => {
    const changed = new Map<string, JsonValue>()
    for (const [key, { time, bytes }] of byKey) {
      changed.set(key, withMeasurement(values.get(key), chunkAt(time, tier), time, bytes))
    }
    return changed
  })
}
