import { describe, expect, it } from 'vitest'
import { lastMeasurements, totals } from '../../../src/core/usage/points.ts'

const MINUTES = { from: 120, to: 360, seconds: 60 }

describe('totals of intervals', () => {
  it('add up what is in them, and leave out those with nothing', () => {
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
      [120, 5],
      [300, 6],
    ])
  })
})

describe('measurements of intervals', () => {
  it('are the last in each, or the latest before it', () => {
    const points = [
      [190, 7],
      [100, 1],
      [10, 9],
      [185, 6],
      [400, 8],
    ] as const
    expect(lastMeasurements(points, MINUTES, 1_000)).toEqual([
      [120, 1],
      [180, 7],
      [240, 7],
      [300, 7],
    ])
  })

  it('begin where something is known, and end with the time that is', () => {
    expect(lastMeasurements([[200, 7]], MINUTES, 240)).toEqual([
      [180, 7],
      [240, 7],
    ])
    expect(lastMeasurements([[200, 7]], MINUTES, 119)).toEqual([])
    expect(lastMeasurements([], MINUTES, 1_000)).toEqual([])
  })

  it('of the same time: the one that comes later', () => {
    const points = [
      [120, 1],
      [120, 2],
    ] as const
    expect(lastMeasurements(points, MINUTES, 120)).toEqual([[120, 2]])
  })
})
