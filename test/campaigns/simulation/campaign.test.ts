import { expect, it } from 'vitest'
import { byRun } from '../../support/run-size.ts'
import { report } from './report.ts'
import { run } from './simulation.ts'

const SEEDS = byRun({ quick: 150, full: 200 })
const STEPS = 400

/** The runs must contain each of these; otherwise they would prove too little. */
const EXPECTED_EVENTS = [
  'appended',
  'refused',
  'not-made',
  'unknown',
  'refused: seq_num_mismatch',
  'refused: fencing_token_mismatch',
  'unknown: storage',
  'unknown: closed',
  'open session',
  'no session: storage',
  'no session: stream_not_found',
  'read',
  'batch',
  'tail',
  'heartbeat',
  'end of read',
  'left',
  'not opened: range_not_satisfiable',
  'no batch: range_not_satisfiable',
  'not opened: storage',
  'failed: closed',
  'failed: stream_not_found',
  'not-made: invalid',
  'not-made: stream_deletion_pending',
  'freed',
  'delete',
  'reconfigure',
  'ensure',
  'create',
  'config',
  'list',
  'failed: resource_already_exists',
  'failed: storage',
  'crashes',
  'closes',
  'closed',
  'loses its connection',
  'is reconnected',
  'gets a conflict next',
  'lost',
  'clock is set',
  'duplicate',
  'closed already',
  'not-made: producer_gap',
  'not-made: producer_fenced',
  'not-made: already_appended',
  'not-made: stream_closed',
  'not-made: stream_seq_not_increasing',
  'close',
  'close with records',
  'fork',
  'create with content',
  'creation: acknowledged',
  'creation: unknown',
  'creation: not made: stream_not_found',
  'creation: not made: storage',
  'creation: not made: invalid',
  'expired',
  'deleted',
  'deleted when empty',
]

it(`keeps every promise in ${SEEDS} seeds`, { timeout: 300_000 }, async () => {
  const events = new Set<string>()
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await run({ seed, steps: STEPS })
    if (result.violation !== undefined) expect.fail(report(result))
    for (const line of result.lines) {
      const { event, error } = JSON.parse(line)
      events.add(event).add(`${event}: ${error}`)
    }
  }
  expect(EXPECTED_EVENTS.filter((event) => !events.has(event))).toEqual([])
})
