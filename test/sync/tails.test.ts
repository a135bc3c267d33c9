import { expect, test } from 'vitest'
import { tailOfExamined } from '../../adapters/sync/tails.ts'
import { outcomeOf } from '../support/index.ts'
import { openBoth } from './mirrored.ts'
import { numbered } from './outboxes.ts'

test.each([
  ['waits for a copy that lacks what the server has', 30, 'unavailable'],
  ['takes a copy of a stream as it is whose records the server has lost', 10, 'ok'],
])('%s', async (_, records, outcome) => {
  const { origin, remote, local } = await openBoth()
  await origin.append(numbered(0, records))
  await local.append(numbered(0, 5))
  const { signal } = new AbortController()
  const tail = tailOfExamined({ examined: local, remote }, 20, 0, signal)
  expect(await outcomeOf(tail)).toBe(outcome)
  if (outcome === 'ok') expect(await tail).toBe(5)
})
