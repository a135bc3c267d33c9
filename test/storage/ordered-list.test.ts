import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OrderedList } from '../../src/storage/ordered-list.ts'

const numbers = (a: number, b: number) => a - b

test('an empty list contains nothing', () => {
  const list = new OrderedList<number>(numbers)
  expect(list.size).toBe(0)
  expect(list.first()).toBeUndefined()
  expect(list.delete(1)).toBe(false)
  expect([...list.from(() => true)]).toEqual([])
})

test('matches a sorted set, across many chunks', { tags: ['slow'] }, () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 150, maxLength: 400 }), (values) => {
      const list = new OrderedList<number>(numbers)
      const set = new Set<number>()
      for (const [i, value] of values.entries()) {
        if (set.has(value)) expect(list.delete(value)).toBe(set.delete(value))
        else if (i % 5 === 4) expect(list.delete(value)).toBe(false)
        else {
          list.add(value)
          set.add(value)
        }
      }
      const sorted = [...set].sort(numbers)
      expect(list.size).toBe(sorted.length)
      expect(list.first()).toBe(sorted[0])
      for (const start of [-1, 0, 777, 1500, 2999, 3001]) {
        expect([...list.from((value) => value >= start)]).toEqual(sorted.filter((value) => value >= start))
      }
    }),
  )
})

test('works as a queue: appends at the end, removes at the front', { tags: ['slow'] }, () => {
  const list = new OrderedList<number>(numbers)
  for (let i = 0; i < 1000; i++) list.add(i)
  for (let i = 0; i < 1000; i++) {
    expect(list.first()).toBe(i)
    expect(list.delete(i)).toBe(true)
  }
  expect(list.size).toBe(0)
  list.add(7)
  expect([...list.from(() => true)]).toEqual([7])
})
