import { describe, expect, it } from 'vitest'
import { measuredOffset, refineOffset } from '../../src/core/clocks.ts'

const AGREED = { offsetMs: 0, errorMs: 0 }

describe('the offset of a clock', () => {
  it('is measured against the middle of the round trip, with half of it as the error', () => {
    expect(measuredOffset(1_000, 1_100, 8_050)).toEqual({ offsetMs: 7_000, errorMs: 51 })
  })

  it('is unknown if the own clock was set back meanwhile', () => {
    const measured = measuredOffset(1_000, 500, 8_050)
    expect(refineOffset({ offsetMs: 3, errorMs: 5 }, measured)).toEqual({ offsetMs: 3, errorMs: 5 })
  })

  it.each([
    ['stays if the measurement is consistent with it', AGREED, { offsetMs: 20, errorMs: 25 }, AGREED],
    [
      'stays if a precise measurement is no more precise',
      { offsetMs: 5, errorMs: 2 },
      { offsetMs: 7, errorMs: 2 },
      { offsetMs: 5, errorMs: 2 },
    ],
    [
      'becomes more precise',
      { offsetMs: 50, errorMs: 60 },
      { offsetMs: 7, errorMs: 2 },
      { offsetMs: 7, errorMs: 2 },
    ],
    [
      'follows a clock that was set',
      { offsetMs: 5, errorMs: 2 },
      { offsetMs: -7_200_000, errorMs: 40 },
      { offsetMs: -7_200_000, errorMs: 40 },
    ],
  ])('%s', (_, known, measured, expected) => {
    expect(refineOffset(known, measured)).toEqual(expected)
  })
})
