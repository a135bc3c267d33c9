import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addRange,
  coversRange,
  NO_RANGES,
  type SeqRange,
  type SeqRanges,
  subtractRanges,
  uniteRanges,
} from '../../../../adapters/storage/filesystem/state/seq-ranges.ts'

const NUMBERS = 40
const range = fc
  .tuple(fc.nat(NUMBERS - 1), fc.integer({ min: 1, max: 8 }))
  .map(([from, length]) => ({ from, to: from + length }))
const sets = fc.array(range, { maxLength: 12 }).map((all) => all.reduce(addRange, NO_RANGES))

describe('ranges are sets of numbers', () => {
  test('add a range', () => {
    fc.assert(
      fc.property(sets, range, (ranges, added) => {
        expectSet(addRange(ranges, added), union(numbersOf(ranges), numbersOf([added])))
      }),
    )
  })

  test('union', () => {
    fc.assert(
      fc.property(sets, sets, (ranges, others) => {
        expectSet(uniteRanges(ranges, others), union(numbersOf(ranges), numbersOf(others)))
        expectSet(uniteRanges(NO_RANGES, pieces(others)), numbersOf(others))
      }),
    )
  })

  test('difference', () => {
    fc.assert(
      fc.property(sets, sets, (ranges, removed) => {
        const gone = numbersOf(removed)
        const remaining = new Set([...numbersOf(ranges)].filter((number) => !gone.has(number)))
        expectSet(subtractRanges(ranges, removed), remaining)
        expectSet(subtractRanges(ranges, pieces(removed)), remaining)
      }),
    )
  })

  test('coverage', () => {
    fc.assert(
      fc.property(sets, range, (ranges, wanted) => {
        const numbers = numbersOf(ranges)
        const isCovered = [...numbersOf([wanted])].every((number) => numbers.has(number))
        expect(coversRange(ranges, wanted)).toBe(isCovered)
      }),
    )
  })
})

test('operations on many ranges take linear time', () => {
  const count = 200_000
  const even = Array.from({ length: count }, (_, i) => ({ from: 4 * i, to: 4 * i + 1 }))
  const odd = even.map(({ from }) => ({ from: from + 2, to: from + 3 }))
  const both = uniteRanges(even, odd)
  expect(both).toHaveLength(2 * count)
  expect(subtractRanges(both, odd)).toEqual(even)
  expect(subtractRanges([{ from: 0, to: 4 * count }], both)).toHaveLength(2 * count)
})

/** Disjoint, not adjacent, ascending, and exactly these numbers. */
function expectSet(ranges: SeqRanges, numbers: ReadonlySet<number>): void {
  expect([...numbersOf(ranges)]).toEqual([...numbers].sort((a, b) => a - b))
  for (const [i, { from, to }] of ranges.entries()) {
    expect(from).toBeLessThan(to)
    if (i > 0) expect(from).toBeGreaterThan(ranges[i - 1]!.to)
  }
}

function numbersOf(ranges: readonly SeqRange[]): Set<number> {
  const all = ranges.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i))
  return new Set(all)
}

function union(a: ReadonlySet<number>, b: ReadonlySet<number>): Set<number> {
  return new Set([...a, ...b])
}

/** The same, each cut into numbers that touch. */
function pieces(ranges: SeqRanges): SeqRange[] {
  return [...numbersOf(ranges)].map((number) => ({ from: number, to: number + 1 }))
}
