import { expect, it } from 'vitest'
import { Histogram } from '../../src/usage/usage-meter.ts'

it('counts values up to each bound and above the previous one', () => {
  const histogram = new Histogram([1, 10])
  for (const value of [0, 1, 1.5, 10, 10.5, 1000]) histogram.observe(value)
  expect(histogram.counts).toEqual({ bounds: [1, 10], counts: [2, 2, 2], sum: 1023 })
})

it('returns snapshots that do not change', () => {
  const histogram = new Histogram([1])
  const before = histogram.counts
  histogram.observe(1)
  expect(before).toEqual({ bounds: [1], counts: [0, 0], sum: 0 })
})
