import { hourOf } from '../core/usage/sampling.ts'
import {
  isDue,
  mergeSeries,
  pointsOf,
  rolledUpInto,
  rollUpSeries,
  type SeriesOfChunk,
  STORED_BYTES,
  TIERS,
  type Tier,
  type TierChunk,
} from '../core/usage/tiers.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import type { JsonValue } from '../storage/contract.ts'
import {
  changeDocuments,
  EMPTY_USAGE,
  mergeWriters,
  parseUsageKey,
  tierPrefix,
  type UsageDocument,
  usageJson,
  usageKey,
  usageScopeOf,
} from './documents.ts'

const PAGE = 50

/**
 * Moves usage that is too old for its tier into the next one. Each document is deleted and added to its
 * target in the same commit, so that concurrent engines neither count usage twice nor lose any. Drops the
 * sizes of streams that no longer exist.
 */
export class RollUp {
  readonly #context: UsageContext
  /** The last hour in which nothing was left to do: chunks become due only when an hour ends. */
  #doneInHour = -1

  constructor(context: UsageContext) {
    this.#context = context
  }

  /** Performs a bounded step. Resolves to whether more is left. */
  async step(): Promise<boolean> {
    const now = Math.floor(this.#context.clock.now() / 1000)
    if (this.#doneInHour === hourOf(now)) return false
    for (const tier of TIERS) if (await this.#rollUpSome(tier, now)) return true
    this.#doneInHour = hourOf(now)
    return false
  }

  /** Resolves to whether anything was due. */
  async #rollUpSome(tier: Tier, now: number): Promise<boolean> {
    const { session } = this.#context
    const page = await session.list('usage', { prefix: tierPrefix(tier), after: '', limit: PAGE })
    const due = page.map(({ key }) => key).filter((key) => isDue(parseUsageKey(key).at, now))
    if (due.length === 0) return false
    const moves = await Promise.all(due.map((key) => this.#moveOf(key)))
    const keys = new Set(
      moves.flatMap(({ key, target }) => (target === undefined ? [key] : [key, target.key])),
    )
    await changeDocuments(session, 'usage', [...keys], (values) => {
      const changed = new Map<string, JsonValue | null>()
      for (const move of moves) applyMove(move, values, changed)
      return changed
    })
    return true
  }

  async #moveOf(key: string): Promise<Move> {
    const { at, scope } = parseUsageKey(key)
    const of = usageScopeOf(scope)
    const isGone = of.kind === 'log' && (await this.#context.session.head(of.id)) === undefined
    const to = isGone ? undefined : targetOf(at, of.kind === 'log')
    return { key, at, target: to && { key: usageKey(to, scope), at: to } }
  }
}

interface Move {
  readonly key: string
  readonly at: TierChunk
  /** Undefined if the document is dropped. */
  readonly target: { readonly key: string; readonly at: TierChunk } | undefined
}

/**
 * Moves are applied in ascending order of time, so that usage added to a document that itself moves moves on
 * with it.
 */
function applyMove(
  { key, at, target }: Move,
  values: ReadonlyMap<string, JsonValue | undefined>,
  changed: Map<string, JsonValue | null>,
): void {
  const current = (of: string) =>
    (changed.has(of) ? changed.get(of) : values.get(of)) as unknown as UsageDocument | null | undefined
  const source = current(key)
  // Another engine moved it first.
  if (source == null) return
  changed.set(key, null)
  if (target === undefined) return
  const { series, writers } = current(target.key) ?? EMPTY_USAGE
  const next =
    target.at.tier === at.tier
      ? mergeSeries(lastMeasurement(source.series, at), series)
      : mergeSeries(series, rollUpSeries(source.series, at, target.at))
  changed.set(target.key, usageJson({ series: next, writers: mergeWriters(writers, source.writers) }))
}

/**
 * The chunk that a chunk is added to. In the last tier, the size of an existing stream is carried over to the
 * next chunk, because it holds until the stream changes.
 */
function targetOf(at: TierChunk, carriesOver: boolean): TierChunk | undefined {
  return rolledUpInto(at) ?? (carriesOver ? { tier: at.tier, chunk: at.chunk + 1 } : undefined)
}

/** The last measurement of a chunk, moved to the first bucket. */
function lastMeasurement(series: SeriesOfChunk, at: TierChunk): SeriesOfChunk {
  const last = pointsOf(series, STORED_BYTES, at).at(-1)
  return last === undefined ? {} : { [STORED_BYTES]: { 0: last[1] } }
}
