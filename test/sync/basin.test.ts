import { expect, test } from 'vitest'
import { connectedStreams, isInternalName, openInTabs, syncedNameProblem } from '../../src/sync/basin.ts'

test.each([
  ['rooms/a', undefined],
  ['rooms/.outbox/a', undefined],
  [`rooms/${'x'.repeat(498)}`, undefined],
  [`rooms/${'x'.repeat(499)}`, /must not exceed 504 bytes/],
  ['', /must not be empty/],
  ['room/a', /must begin with "rooms\/"/],
])('decides about the name %.20s', (name, problem) => {
  const found = syncedNameProblem(name, 'rooms/')
  if (problem === undefined) expect(found).toBeUndefined()
  else expect(found).toMatch(problem)
})

test.each(['.outbox/a', '.fold/a/b', '.basin/'])('%s is not synced', (name) => {
  expect(isInternalName(name)).toBe(true)
  expect(syncedNameProblem(name, '')).toMatch(/sync uses itself/)
})

const NOW = 1_000_000
const NOT_DUE = NOW - 10_000
const DUE = NOW - 40_000
const DONE = Number.POSITIVE_INFINITY

/** The names of streams that may connect, and in which time another one is due. The first was used last. */
function connected(visitedAt: readonly number[], connectionsMax: number, before = '') {
  const open = visitedAt.map((at, index) => ({ name: 'abcdef'[index]!, usedAt: 9 - index, visitedAt: at }))
  const decided = connectedStreams(open, new Set(before), NOW, connectionsMax, 30_000)
  return [[...decided.connected].join(''), decided.dueInMs]
}

test.each([
  ['all, if there are enough connections', [0, 0, 0], 3, '', 'abc', DONE],
  ['those that were used last, if no other is due', [DONE, DONE, DONE, NOT_DUE], 3, '', 'abc', 20_000],
  ['in turn the others, if they are due', [DONE, DONE, DONE, DUE], 3, '', 'abd', DONE],
  ['first the one that was never visited', [DONE, DUE, 0, DUE], 2, '', 'ac', DONE],
  ['first the one whose visit is longest ago', [DONE, DUE, DUE - 1, DUE], 2, '', 'ac', DONE],
  ['a due one after the clock was set back', [DONE, DONE, NOW + 86_400_000], 2, '', 'ac', DONE],
  ['none that was just visited', [DONE, NOT_DUE, NOW, NOT_DUE], 2, 'a', 'ab', 20_000],
  ['one that is due soon after another one', [DONE, NOW, DONE, NOW - 20_000], 2, 'ac', 'ad', 10_000],
  ['all in turn, if there is one connection', [DUE, 0], 1, 'a', 'b', DONE],
])('connects %s', (_, visitedAt, connectionsMax, before, names, dueInMs) => {
  expect(connected(visitedAt, connectionsMax, before)).toEqual([names, dueInMs])
})

test('a stream that several tabs have open is used and visited as in the one that did so last', () => {
  const [a, b] = [
    { name: 'x', usedAt: 1, visitedAt: 9 },
    { name: 'x', usedAt: 5, visitedAt: 3 },
  ]
  const other = { name: 'y', usedAt: 2, visitedAt: 0 }
  expect(openInTabs([[a], [other, b]])).toEqual([{ name: 'x', usedAt: 5, visitedAt: 9 }, other])
})
