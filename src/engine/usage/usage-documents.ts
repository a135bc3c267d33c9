import type { Activity } from '../../core/usage/activity.ts'
import type { Sampled } from '../../core/usage/sampled.ts'
import { bucketOf, mergeSeries, type SeriesOfChunk, STORED_BYTES } from '../../core/usage/series.ts'
import { TIERS, type Tier, type TierChunk } from '../../core/usage/tiers.ts'
import type { JsonValue } from '../../storage/contract.ts'

/**
 * The documents of the collection `usage`, and one of `settings`. Persisted: members may be added, never renamed or given another meaning.
 */

/** Key: {@link usageKey}. At most 119 of a scope at any time. */
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
export type SampledDocument = Sampled

export const SAMPLED_KEY = 'usage-sampled'

/** The number of the last commit of each engine that a document holds, the latest last. An engine makes its commits one after the other. */
export type Writers = readonly (readonly [engineId: string, commit: number])[]

const WRITERS_MAX = 16

/**
 * Notes a commit in the document that it is added to, so that one whose outcome is unknown can be made again without being counted twice.
 * Only the engines that wrote last are kept: nobody makes a commit again after so many others.
 */
export function addWriter(writers: Writers, engineId: string, commit: number): Writers {
  const others = writers.filter(([id]) => id !== engineId)
  return [...others.slice(-(WRITERS_MAX - 1)), [engineId, commit]]
}

export function holdsCommit(writers: Writers, engineId: string, commit: number): boolean {
  return writers.some(([id, last]) => id === engineId && last >= commit)
}

/** The commits of a document, with those of another that is added to it. */
export function mergeWriters(writers: Writers, added: Writers): Writers {
  const missing = added.filter(([id, commit]) => !holdsCommit(writers, id, commit))
  return missing.reduce((merged, [id, commit]) => addWriter(merged, id, commit), writers)
}

/** The document with what its scope held at a time in its chunk, in seconds. */
export function withMeasurement(
  document: JsonValue | undefined,
  at: TierChunk,
  time: number,
  bytes: number,
): JsonValue {
  const { series, writers } = (document as unknown as UsageDocument | undefined) ?? NO_USAGE
  const measured = { [STORED_BYTES]: { [bucketOf(time, at)]: bytes } }
  return usageJson({ series: mergeSeries(series, measured), writers })
}

export const NO_USAGE: UsageDocument = { series: {}, writers: [] }

export const ACCOUNT = 'account'

export function basinScope(basin: string): string {
  return `basin\0${basin}`
}

export function logScope(logId: string): string {
  return `log\0${logId}`
}

export type Scope = { readonly kind: 'account' } | { readonly kind: 'basin' | 'log'; readonly id: string }

export function scopeOf(scope: string): Scope {
  const [kind, id] = scope.split('\0')
  return kind === 'basin' || kind === 'log' ? { kind, id: id! } : { kind: 'account' }
}

/** Enough for the hours of 2^53 milliseconds. */
const CHUNK_DIGITS = 10

/** The documents of a tier lie in the order of their times. No name of a basin and no id of a log holds U+0000. */
export function usageKey({ tier, chunk }: TierChunk, scope: string): string {
  return `${tierPrefix(tier)}${String(chunk).padStart(CHUNK_DIGITS, '0')}\0${scope}`
}

export function tierPrefix(tier: Tier): string {
  return `${tier.name}\0`
}

export interface UsagePlace {
  readonly at: TierChunk
  readonly scope: string
}

/** What a {@link usageKey} names. */
export function placeOf(key: string): UsagePlace {
  const [name, chunk, ...scope] = key.split('\0')
  const tier = TIERS.find((one) => one.name === name)!
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
