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

  it('accepts 0 as a timestamp', () => {
    expect(assignTimestamp(0, 0, { mode: 'client-prefer', uncapped: false }, NOW)).toBe(0)
    expect(assignTimestamp(0, 0, { mode: 'client-require', uncapped: false }, NOW)).toBe(0)
  })
})
