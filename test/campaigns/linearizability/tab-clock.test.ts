import { expect, it } from 'vitest'
import { FAILED } from './operations.ts'
import { byTestClock, offsetBy } from './tab-clock.ts'

it('the offset of a clock is within the bounds of the fastest responses', () => {
  const { least, most } = offsetBy([
    { before: 100, inTab: 10, after: 120 },
    { before: 200, inTab: 105, after: 203 },
    { before: 300, inTab: 207, after: 304 },
  ])
  expect(least).toBeCloseTo(94.9)
  expect(most).toBeCloseTo(97.1)
})

it('an operation spans the longest time that it may have taken', () => {
  const recorded = { id: 0, client: 0, stream: 's', operation: { kind: 'read' }, outcome: FAILED } as const
  const [operation] = byTestClock([{ ...recorded, calledAt: 1, returnedAt: 2 }], { least: 95, most: 98 })
  expect(operation!.calledAt).toBeCloseTo(95.9)
  expect(operation!.returnedAt).toBeCloseTo(100.1)
})
