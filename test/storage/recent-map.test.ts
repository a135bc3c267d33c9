import { expect, it } from 'vitest'
import { RecentMap } from '../../src/storage/ordered-list.ts'

it('keeps the entries that were set most recently', () => {
  const map = new RecentMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ])
})
