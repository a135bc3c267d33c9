import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assignTimestamp } from '../../src/core/sequence.ts'
import type { TimestampingMode } from '../../src/model/config.ts'

const NOW = 1000
const PREVIOUS = 900
/** In the past but after the previous record; in the past and before it; in the future. */
const GIVEN = [undefined, 950, 800, NOW, 5000]

describe('the timestamp of a record', () => {
  it.each<[TimestampingMode, boolean, ...(number | undefined)[]]>([
    // mode, uncapped: absent, past, before the record before, now, future
    ['client-prefer', false, 1000, 950, 900, 1000, 1000],
    ['client-prefer', true, 1000, 950, 900, 1000, 5000],
    ['client-require', false, undefined, 950, 900, 1000, 1000],
    ['client-require', true, undefined, 950, 900, 1000, 5000],
    ['arrival', false, 1000, 1000, 1000, 1000, 1000],
    ['arrival', true, 1000, 1000, 1000, 1000, 1000],
  ])('%s, uncapped %s', (mode, uncapped, ...expected) => {
    const assigned = GIVEN.map((given) => assignTimestamp(given, PREVIOUS, { mode, uncapped }, NOW))
    expect(assigned).toEqual(expected)
  })

  it.each<[TimestampingMode, boolean, ...(number | undefined)[]]>([
    ['client-prefer', false, 4000, 4000, 4000, 4000, 4000],
    ['client-prefer', true, 4000, 4000, 4000, 4000, 5000],
    ['client-require', false, undefined, 4000, 4000, 4000, 4000],
    ['client-require', true, undefined, 4000, 4000, 4000, 5000],
    ['arrival', false, 4000, 4000, 4000, 4000, 4000],
    ['arrival', true, 4000, 4000, 4000, 4000, 4000],
  ])('%s, uncapped %s, after a record from the future', (mode, uncapped, ...expected) => {
    const assigned = GIVEN.map((given) => assignTimestamp(given, 4000, { mode, uncapped }, NOW))
    expect(assigned).toEqual(expected)
  })

  it('accepts 0 as a timestamp', () => {
    expect(assignTimestamp(0, 0, { mode: 'client-prefer', uncapped: false }, NOW)).toBe(0)
    expect(assignTimestamp(0, 0, { mode: 'client-require', uncapped: false }, NOW)).toBe(0)
  })

  it('never decreases, and exceeds the current time only if uncapped or already beyond it', () => {
    const mode = fc.constantFrom('client-prefer', 'client-require', 'arrival' as const)
    const time = fc.oneof(fc.nat(20), fc.maxSafeNat())
    fc.assert(
      fc.property(fc.option(time), time, mode, fc.boolean(), time, (given, previous, mode, uncapped, now) => {
        const assigned = assignTimestamp(given ?? undefined, previous, { mode, uncapped }, now)
        if (assigned === undefined) {
          expect([mode, given]).toEqual(['client-require', null])
          return
        }
        expect(assigned).toBeGreaterThanOrEqual(previous)
        if (!uncapped) expect(assigned).toBeLessThanOrEqual(Math.max(previous, now))
      }),
    )
  })
})
