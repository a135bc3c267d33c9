import { describe, expect, it } from 'vitest'
import { STORED_BYTES } from '../../../src/core/usage/series.ts'
import { AppendOperations } from '../../../src/engine/usage/append-operations.ts'
import { PendingUsage } from '../../../src/engine/usage/pending-usage.ts'
import { MINUTE, START } from './support.ts'

describe('usage that is not stored yet', () => {
  it('is one value for each series and minute: the sum, or the last measurement', () => {
    const pending = new PendingUsage()
    for (const value of [3, 4]) {
      pending.add('basin\0one', 'read-ops:unary', START + 5, value)
      pending.add('log\0a', STORED_BYTES, START + 5, value)
    }
    expect(pending.size).toBe(2)
    expect(pending.take(START + MINUTE).map(({ scope, series }) => [scope, series])).toEqual([
      ['basin\0one', { 'read-ops:unary': { 0: 7 } }],
      ['log\0a', { [STORED_BYTES]: { 0: 4 } }],
    ])
  })

  it('goes to the tier of its age', () => {
    const pending = new PendingUsage()
    for (const daysAgo of [0, 10, 100]) {
      pending.add('account', 'account-ops:list-basins', START - daysAgo * 86_400, 1)
    }
    expect(pending.take(START).map(({ at }) => at.tier.name)).toEqual(['minutes', 'hours', 'days'])
  })
})

describe('append operations', () => {
  it('begin anew in each minute, for each log and connection', () => {
    const operations = new AppendOperations()
    const [one, other] = [{}, {}]
    expect(operations.begins('a', one, START)).toBe(true)
    expect(operations.begins('a', one, START)).toBe(false)
    expect(operations.begins('a', other, START)).toBe(true)
    expect(operations.begins('b', one, START)).toBe(true)
    expect(operations.begins('a', one, START + MINUTE)).toBe(true)
    operations.forgetBefore(START + MINUTE)
    expect(operations.begins('a', one, START + MINUTE)).toBe(false)
  })
})
