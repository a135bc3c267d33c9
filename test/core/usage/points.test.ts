import { describe, expect, it } from 'vitest'
import { lastMeasurements, totals } from '../../../src/core/usage/metrics-plan.ts'

const MINUTES = { from: 120, to: 360, seconds: 60 }

describe('totals of intervals', () => {
  it('are in milliseconds and leave out intervals without usage', () => {
    const points = [
      [300, 1],
      [119, 100],
      [120, 2],
      [179, 3],
      [240, 0],
      [359, 5],
      [360, 100],
    ] as const
    expect(totals(points, MINUTES)).toEqual([
      [120_000, 5],
      [300_000, 6],
    ])
  })
})

describe('measurements of intervals', () => {
  it('are the last of each interval, or the latest one before it', () => {
    const points = [
      [190, 7],
      [100, 1],
      [10, 9],
      [185, 6],
      [400, 8],
    ] as const
    expect(lastMeasurements(points, MINUTES, 1_000)).toEqual([
      [120_000, 1],
      [180_000, 7],
      [240_000, 7],
      [300_000, 7],
    ])
  })

  it('begin with the first measurement and end with the current interval', () => {
    expect(lastMeasurements([[200, 7]], MINUTES, 240)).toEqual([
      [180_000, 7],
      [240_000, 7],
    ])
    expect(lastMeasurements([[200, 7]], MINUTES, 119)).toEqual([])
    expect(lastMeasurements([], MINUTES, 1_000)).toEqual([])
  })

  it('are the later ones in the list at equal times', () => {
    const points = [
      [120, 1],
      [120, 2],
    ] as const
    expect(lastMeasurements(points, MINUTES, 120)).toEqual([[120_000, 2]])
  })
})
