import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pointsOf } from '../../src/core/usage/tiers.ts'
import { PendingUsage } from '../../src/usage/pending-usage.ts'
import { DAY, MINUTE, START } from './support.ts'

describe('pending usage', () => {
  it('has one value for each series and minute', () => {
    const pending = new PendingUsage()
    for (const value of [3, 4]) pending.add('basin\0one', 'read-ops:unary', START + 5, value)
    expect(pending.size).toBe(1)
    expect(pending.take(START + MINUTE).map(({ scope, series }) => [scope, series])).toEqual([
      ['basin\0one', { 'read-ops:unary': { 0: 7 } }],
    ])
  })

  it('belongs to the tier of its age', () => {
    const pending = new PendingUsage()
    for (const daysAgo of [0, 10, 100]) {
      pending.add('account', 'account-ops:list-basins', START - daysAgo * 86_400, 1)
    }
    expect(pending.take(START).map(({ at }) => at.tier.name)).toEqual(['minutes', 'hours', 'days'])
  })

  it('is flushed as one document for each scope and chunk', () => {
    const added = fc.record({
      scope: fc.constantFrom('account', 'basin\0one', 'basin\0two'),
      series: fc.constantFrom('read-ops:unary', 'read-ops:streaming'),
      age: fc.oneof(fc.nat(7_200), fc.nat(60 * DAY)),
      value: fc.integer({ min: 1, max: 9 }),
    })
    const keyOf = (scope: string, series: string, time: number) =>
      `${scope} ${series} ${Math.floor(time / DAY)}`
    fc.assert(
      fc.property(fc.array(added, { maxLength: 200 }), fc.integer({ min: 1, max: 50 }), (all, valuesMax) => {
        const pending = new PendingUsage(valuesMax)
        const expected = new Map<string, number>()
        for (const { scope, series, age, value } of all) {
          pending.add(scope, series, START - age, value)
          const key = keyOf(scope, series, START - age)
          expected.set(key, (expected.get(key) ?? 0) + value)
        }
        const deltas = pending.take(START)
        expect(new Set(deltas.map(({ key }) => key)).size).toBe(deltas.length)
        const taken = new Map<string, number>()
        for (const { scope, series, at } of deltas) {
          for (const name of Object.keys(series)) {
            for (const [time, value] of pointsOf(series, name, at)) {
              const key = keyOf(scope, name, time)
              taken.set(key, (taken.get(key) ?? 0) + value)
            }
          }
        }
        expect([...taken].toSorted()).toEqual([...expected].toSorted())
        expect(pending.isEmpty).toBe(true)
      }),
    )
  })
})
