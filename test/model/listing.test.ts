import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listLimit, pageOf } from '../../src/model/info.ts'

describe('the limit of a list', () => {
  it.each([
    [undefined, 1000],
    [0, 1000],
    [1, 1],
    [999, 999],
    [1000, 1000],
    [1001, 1000],
    [2 ** 60, 1000],
    [Number.POSITIVE_INFINITY, 1000],
    [-1, 1000],
    [Number.NaN, 1000],
    [0.5, 1000],
    [2.5, 2],
  ])('%s is %d', (limit, expected) => {
    expect(listLimit(limit)).toBe(expected)
  })
})

describe('a page', () => {
  it('has `hasMore` exactly if a match was left out, and the pages contain every match', () => {
    fc.assert(
      fc.property(fc.nat(30), fc.integer({ min: 1, max: 7 }), (count, limit) => {
        const all = Array.from({ length: count }, (_, index) => index)
        const listed: number[] = []
        for (let hasMore = true; hasMore; ) {
          const page = pageOf(all.slice(listed.length, listed.length + limit + 1), limit, (item) => item)
          listed.push(...page.items)
          hasMore = page.hasMore
          expect(hasMore).toBe(listed.length < count)
        }
        expect(listed).toEqual(all)
      }),
    )
  })
})
