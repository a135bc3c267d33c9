import { expect, it } from 'vitest'
import type { SequencedRecord } from '../../src/model/record.ts'
import {
  isUseNews,
  NO_USE,
  type RecentUse,
  usedNames,
  useRecord,
  useSummary,
  withUseRecords,
} from '../../src/sync/recent-use.ts'

type Note = Parameters<typeof useRecord>[0]

function after(state: RecentUse, notes: readonly Note[], timestamp = 0): RecentUse {
  const records = notes.map(
    (note, index): SequencedRecord => ({
      seqNum: state.next + index,
      timestamp,
      headers: [],
      command: undefined,
      ...useRecord(note),
    }),
  )
  return withUseRecords(state, records)
}

it('streams are in the order of their last use', () => {
  const use = after(NO_USE, [{}, { used: ['a'] }, { used: ['b'] }, { listed: true }, { used: ['a'] }])
  expect(usedNames(use)).toEqual(['a', 'b'])
  expect(use).toMatchObject({ listings: 1, next: 5 })
})

it('a summary stands for the log before it', () => {
  const use = after(NO_USE, [{ used: ['a'] }, { used: ['b'] }, { used: ['c'] }, { used: ['a'] }], 5)
  expect(usedNames(after(NO_USE, [useSummary(use)]))).toEqual(usedNames(use))
  const same = after(use, [useSummary(use)], 1_000)
  expect([...same.times]).toEqual([...use.times])
})

it('a use is news when the one before was ten seconds ago, whatever the clock does', () => {
  const use = after(NO_USE, [{ used: ['a'] }], 50_000)
  const isNews = [50_000, 59_999, 60_000, 40_001, 40_000].map((now) => isUseNews(use, 'a', now))
  expect(isNews).toEqual([false, false, true, false, true])
  expect(isUseNews(use, 'b', 50_000)).toBe(true)
})

it('the last 256 streams are kept', () => {
  const names = Array.from({ length: 300 }, (_, index) => `${index}`)
  const use = after(
    NO_USE,
    names.map((name) => ({ used: [name] })),
  )
  expect(usedNames(use)).toEqual(names.slice(44).reverse())
})
