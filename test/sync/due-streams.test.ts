import { expect, it } from 'vitest'
import { dueAt, NONE_DUE, nextDueAt, postponed, withDue, withoutDue } from '../../src/sync/due-streams.ts'

const at = (now: number, hasFailed: boolean) => ({ now, random: 0, hasFailed })

it('streams have their turns in the order in which they became due', () => {
  const due = withDue(withDue(NONE_DUE, ['a', 'b']), ['c', 'a'])
  expect(dueAt(due, 0)).toEqual(['a', 'b', 'c'])
  expect(dueAt(withoutDue(due, ['b', 'x']), 0)).toEqual(['a', 'c'])
  expect(withoutDue(due, ['x'])).toBe(due)
})

it('a stream that keeps others waiting goes behind them', () => {
  const due = postponed(withDue(NONE_DUE, ['a', 'b']), 'a', at(1_000, false))
  expect(dueAt(due, 1_000)).toEqual(['b', 'a'])
  expect(nextDueAt(due, 1_000)).toBeUndefined()
})

it('a stream that failed waits longer each time', () => {
  let due = withDue(NONE_DUE, ['a', 'b'])
  due = postponed(due, 'a', at(1_000, true))
  expect(dueAt(due, 1_249)).toEqual(['b'])
  expect(nextDueAt(due, 1_000)).toBe(1_250)
  expect(dueAt(due, 1_250)).toEqual(['b', 'a'])
  due = postponed(due, 'a', at(1_250, true))
  expect(nextDueAt(due, 1_250)).toBe(1_750)
  // To become due again changes nothing.
  expect(dueAt(withDue(due, ['a']), 1_250)).toEqual(['b'])
  expect(postponed(due, 'x', at(0, true))).toBe(due)
})
