import type { ReadQuery } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/random.ts'
import type { Moment } from '../model/stream-history.ts'
import { dataRecord, fenceOf, type SentRecord, trimOf } from './append-attempt.ts'
import type { World } from './world.ts'

const LARGE_BODY_BYTES = 200_000

/**
 * A batch of data records, commands, or both. Each record contains the id of its append. `tail` is the one
 * that the writer believes in.
 */
export function drawBatch({ prng, settings }: World, tail: number, id: string, now: number): SentRecord[] {
  const timestamp = drawTimestamp(prng, now)
  const bytes = settings.largeBodies && prng.chance(0.2) ? LARGE_BODY_BYTES : 0
  const data = (count: number) => Array.from({ length: count }, (_, i) => dataRecord(id, i, timestamp, bytes))
  const trim = () => trimOf(prng.chance(0.2) ? Number.MAX_SAFE_INTEGER : prng.below(tail + 3), timestamp)
  const kind = prng.next()
  if (kind < 0.06) return [fenceOf(id, timestamp), ...data(prng.below(2))]
  if (kind < 0.1) return [fenceOf('', timestamp), ...data(1)]
  if (kind < 0.14) return [...data(1 + prng.below(2)), trim(), ...data(prng.below(2))]
  if (kind < 0.17) return [trim(), ...data(1)]
  if (kind < 0.19) return [trim(), fenceOf(id, timestamp)]
  return data(1 + prng.below(4))
}

function drawTimestamp(prng: Prng, now: number): number | undefined {
  if (prng.chance(0.4)) return undefined
  if (prng.chance(0.05)) return Math.max(0, now + (prng.chance(0.5) ? 100_000 : -100_000))
  return now + prng.below(200) - 100
}

/** Any start, any wait, some with a bound. */
export function drawQuery(
  prng: Prng,
  { state, tailTimestamp }: Moment,
  kind: 'unary' | 'session',
): ReadQuery {
  const start = prng.below(8)
  return {
    ...(start < 3 && { seqNum: prng.below(state.tail + 3) }),
    ...(start === 3 && { seqNum: 0 }),
    ...(start === 4 && { timestamp: Math.max(0, tailTimestamp + prng.below(300) - 250) }),
    ...(start > 4 && start < 7 && { tailOffset: prng.below(state.tail + 3) }),
    ...(prng.chance(0.3) && { clamp: true }),
    ...(prng.chance(0.2) && { count: prng.below(12) }),
    ...(prng.chance(kind === 'unary' ? 0.4 : 0.3) && { waitMs: prng.pick([0, 0, 1_000, 5_000, 70_000]) }),
  }
}
