import { hourOf } from '../../core/usage/activity.ts'
import {
  mergeSeries,
  pointsOf,
  rollUpSeries,
  type SeriesOfChunk,
  STORED_BYTES,
} from '../../core/usage/series.ts'
import { isDue, rolledUpInto, TIERS, type Tier, type TierChunk } from '../../core/usage/tiers.ts'
import type { JsonValue } from '../../storage/contract.ts'
import { changeDocuments } from './change-documents.ts'
import {
  mergeWriters,
  NO_USAGE,
  placeOf,
  scopeOf,
  tierPrefix,
  type UsageDocument,
  usageJson,
  usageKey,
} from './usage-documents.ts'
import type { UsageEngine } from './usage-flush.ts'

const PAGE = 50

/**
 * Moves usage into the next tier when it has been kept for long enough in one. A document goes and its contents are added to another in one commit, so that
 * engines that do it at the same time neither count twice nor lose. What streams hold that do not exist any more is dropped.
 */
export class RollUp {
  readonly #engine: UsageEngine
  /** Chunks end with an hour: in that in which nothing was due nothing becomes due. */
  #doneInHour = -1

  constructor(engine: UsageEngine) {
    this.#engine = engine
  }

  /** A bounded step; resolves to whether more is left. */
  async step(): Promise<boolean> {
    const now = Math.floor(this.#engine.settings.clock.now() / 1000)
    if (this.#doneInHour === hourOf(now)) return false
    for (const tier of TIERS) if (await this.#rollUpSome(tier, now)) return true
    this.#doneInHour = hourOf(now)
    return false
  }

  /** Resolves to whether there was anything due. */
  async #rollUpSome(tier: Tier, now: number): Promise<boolean> {
    const { session } = this.#engine
    const page = await session.list('usage', { prefix: tierPrefix(tier), after: '', limit: PAGE })
    const due = page.map(({ key }) => key).filter((key) => isDue(placeOf(key).at, now))
    if (due.length === 0) return false
    const moves = await Promise.all(due.map((key) => this.#moveOf(key)))
    const keys = new Set(
      moves.flatMap(({ key, target }) => (target === undefined ? [key] : [key, target.key])),
    )
    await changeDocuments(session, 'usage', [...keys], (values) => {
      const changed = new Map<string, JsonValue | null>()
      for (const move of moves) makeMove(move, values, changed)
      return changed
    })
    return true
  }

  async #moveOf(key: string): Promise<Move> {
    const { at, scope } = placeOf(key)
    const of = scopeOf(scope)
    const isGone = of.kind === 'log' && (await this.#engine.session.head(of.id)) === undefined
    const to = isGone ? undefined : targetOf(at, of.kind === 'log')
    return { key, at, target: to && { key: usageKey(to, scope), at: to } }
  }
}

interface Move {
  readonly key: string
  readonly at: TierChunk
  /** Undefined: it is dropped. */
  readonly target: { readonly key: string; readonly at: TierChunk } | undefined
}

/** Moves come in the order of their times, so that what one leaves in a document that is to be moved itself goes on with it. */
function makeMove(
  { key, at, target }: Move,
  values: ReadonlyMap<string, JsonValue | undefined>,
  changed: Map<string, JsonValue | null>,
): void {
  const current = (one: string) =>
    (changed.has(one) ? changed.get(one) : values.get(one)) as unknown as UsageDocument | null | undefined
  const source = current(key)
  // Another engine made it.
  if (source == null) return
  changed.set(key, null)
  if (target === undefined) return
  const { series, writers } = current(target.key) ?? NO_USAGE
  const next =
    target.at.tier === at.tier
      ? mergeSeries(lastMeasurement(source.series, at), series)
      : mergeSeries(series, rollUpSeries(source.series, at, target.at))
  changed.set(target.key, usageJson({ series: next, writers: mergeWriters(writers, source.writers) }))
}

/** Where what is due goes. What a stream holds stays known for as long as it exists: it goes on to the next chunk of the last tier. */
function targetOf(at: TierChunk, staysKnown: boolean): TierChunk | undefined {
  return rolledUpInto(at) ?? (staysKnown ? { tier: at.tier, chunk: at.chunk + 1 } : undefined)
}

/** The last measurement as that of a chunk's first bucket. */
function lastMeasurement(series: SeriesOfChunk, at: TierChunk): SeriesOfChunk {
  const last = pointsOf(series, STORED_BYTES, at).at(-1)
  return last === undefined ? {} : { [STORED_BYTES]: { 0: last[1] } }
}
