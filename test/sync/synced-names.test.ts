import { expect, test } from 'vitest'
import { isInternalName, syncedNameProblem } from '../../src/sync/basin.ts'

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
