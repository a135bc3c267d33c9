import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chunkAt,
  chunksBefore,
  chunksBetween,
  DAYS,
  HOURS,
  isDue,
  keptFrom,
  MINUTES,
  nextTier,
  TIERS,
  tierAt,
} from '../../../src/core/usage/tiers.ts'

const DAY = 86_400
const time = fc.integer({ min: 0, max: 30_000 * DAY })
const span = fc.integer({ min: 0, max: 600 * DAY })

describe('tiers of usage', () => {
  it.each([
    [MINUTES, 3 * DAY],
    [HOURS, 40 * DAY],
    [DAYS, 400 * DAY],
  ])('%o keeps a whole chunk for its period after the end', (tier, keptSeconds) => {
    fc.assert(
      fc.property(time, (now) => {
        const { chunk } = chunkAt(now, tier)
        const end = (chunk + 1) * tier.chunkSeconds
        expect(isDue({ tier, chunk }, end + keptSeconds - 1)).toBe(false)
        expect(isDue({ tier, chunk }, end + keptSeconds)).toBe(true)
      }),
    )
  })

  it('a chunk fits into one chunk of the next tier', () => {
    for (const tier of TIERS) {
      const next = nextTier(tier)
      if (next !== undefined) expect(next.chunkSeconds % tier.chunkSeconds).toBe(0)
      if (next !== undefined)
        expect(tier.bucketSeconds * (next.bucketSeconds / tier.bucketSeconds)).toBe(next.bucketSeconds)
    }
  })

  it('a chunk due in one tier is kept in the next', () => {
    fc.assert(
      fc.property(time, span, (now, ago) => {
        const at = Math.max(0, now - ago)
        const tier = tierAt(at, now)
        if (tier !== DAYS) expect(isDue(chunkAt(at, tier), now)).toBe(false)
        const finer = TIERS[TIERS.indexOf(tier) - 1]
        if (finer !== undefined) expect(isDue(chunkAt(at, finer), now)).toBe(true)
      }),
    )
  })

  it('a query covers everything in its range with few chunks', () => {
    const range = fc.integer({ min: 0, max: 30 * DAY })
    fc.assert(
      fc.property(time, span, range, fc.nat(1_000_000), (now, ago, length, offset) => {
        const from = Math.max(0, now - ago)
        const to = from + length
        const at = from + (offset % (length + 1))
        const chunks = chunksBetween(from, to + 1, DAYS, now)
        expect(chunks.length).toBeLessThanOrEqual(73 + 32 + 2)
        for (const { tier, chunk } of chunks) expect(isDue({ tier, chunk }, now)).toBe(false)
        if (at <= now && at >= keptFrom(DAYS, now))
          expect(chunks).toContainEqual(chunkAt(at, tierAt(at, now)))
      }),
    )
  })

  it('a query by hour does not read the days tier', () => {
    const now = 20_000 * DAY
    const tiers = new Set(chunksBetween(now - 30 * DAY, now, HOURS, now).map(({ tier }) => tier))
    expect([...tiers]).toEqual([MINUTES, HOURS])
  })

  it('chunks before a time are searched from the latest, at most 72 + 40 + 5 of them', () => {
    fc.assert(
      fc.property(time, span, span, fc.constantFrom(MINUTES, HOURS), (now, ago, more, finest) => {
        const to = Math.max(0, now - ago)
        const at = to - more
        const chunks = chunksBefore(to, finest, now)
        expect(chunks.length).toBeLessThanOrEqual(72 + 40 + 5)
        const starts = chunks.map(({ tier, chunk }) => (chunk + 1) * tier.chunkSeconds)
        for (const [index, tier] of TIERS.entries()) {
          const ofTier = starts.filter((_, i) => chunks[i]!.tier === tier)
          expect(ofTier).toEqual(ofTier.toSorted((a, b) => b - a))
          if (index < TIERS.indexOf(finest)) expect(ofTier).toEqual([])
        }
        expect(chunks.map(({ tier }) => TIERS.indexOf(tier))).toEqual(
          chunks.map(({ tier }) => TIERS.indexOf(tier)).toSorted((a, b) => a - b),
        )
        const own = tierAt(at, now)
        const tier = TIERS.indexOf(own) < TIERS.indexOf(finest) ? finest : own
        if (at < to && at >= keptFrom(DAYS, now)) expect(chunks).toContainEqual(chunkAt(at, tier))
      }),
    )
  })
})
