import { beforeAll, describe, expect, it } from 'vitest'
import { loadModules } from '../harness/all-modules.ts'
import type { Played } from '../harness/scheduler.ts'
import { reportOf } from '../harness/seeds.ts'
import { BROKEN_ENGINES } from './broken-engines.ts'
import { play, SIMULATION } from './simulation.ts'

/** Together these seeds contain each of the events: without them, the runs would prove too little. */
const SEEDS = [8, 15, 21, 55, 72, 80, 89, 92, 112]
const EVENTS = [
  'unknown: unknown: storage, unknown: closed, unknown, duplicate',
  'refused: seq_num_mismatch, fencing_token_mismatch, producer_gap, producer_fenced, already_appended',
  'refused: stream_closed, stream_seq_not_increasing, invalid, storage, closed, stream_deletion_pending',
  'read: read, heartbeat, left, end of read, session lost, session failed: storage, freed',
  'read: open read: range_not_satisfiable, read batch: range_not_satisfiable, open read: storage',
  'controlled: delete: done, reconfigure: done, ensure: done, config: done, list: done, fork: done',
  'controlled: create with content: done, create: resource_already_exists, fork: storage',
  'removed: deleted, expired, deleted when empty',
  'engines: crashes, closes, closed, loses its connection, is reconnected, gets a conflict next',
  'engines: clock is set, clock leaps',
  'closed: close, close with records',
].flatMap((line) => {
  const [kind, events] = line.split(/: (.*)/) as [string, string]
  return events.split(', ').map((event) => (kind === 'refused' ? `not made: ${event}` : event))
})

beforeAll(loadModules)

function expectKept(played: Played): void {
  if (played.violation !== undefined) expect.fail(reportOf(SIMULATION.name, played))
}

it.each([1, 2, 3])('engines keep every promise in 100 steps of seed %d', async (seed) => {
  expectKept(await play({ seed, steps: 100 }))
})

it('a seed has the same history again, and with fewer steps its beginning', { tags: ['slow'] }, async () => {
  const [first, again] = [await play({ seed: 9, steps: 100 }), await play({ seed: 9, steps: 100 })]
  expect(again).toEqual(first)
  const fewer = await play({ seed: 9, steps: 50 })
  const ofSteps = ({ lines }: Played) => lines.filter((line) => JSON.parse(line).step < 50)
  expect(ofSteps(fewer)).toEqual(ofSteps(first))
  expect((await play({ seed: 10, steps: 100 })).lines).not.toEqual(first.lines)
})

it('engines keep every promise in seeds with every kind of event', { tags: ['slow'] }, async () => {
  const events = new Set<string>()
  for (const seed of [...SIMULATION.regressions, ...SEEDS]) {
    const played = await play({ seed, steps: SIMULATION.steps })
    expectKept(played)
    for (const line of played.lines) events.add(JSON.parse(line).event)
  }
  expect(EVENTS.filter((event) => !events.has(event))).toEqual([])
})

describe('a seed finds', { tags: ['slow'] }, () => {
  it.each(BROKEN_ENGINES)('%s', { tags: ['slow'] }, async (_, seed, steps, sabotage) => {
    const played = await play({ seed, steps }, sabotage())
    expect(played.violation).toBeDefined()
    expect(reportOf(SIMULATION.name, played)).toContain(
      `npm run sim -- --seed ${seed} --steps ${played.steps}`,
    )
  })
})
