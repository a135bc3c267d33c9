import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { open } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { byRun } from '../support/run-size.ts'
import { calls, type DrawnCall } from './differential-calls.ts'
import { extensionCalls } from './differential-extensions.ts'
import { type Outcome, outcomeOf } from './differential-outcome.ts'

/** What a client may do differently, by the reason. Each makes the outcomes equal where it applies. */
const INTENDED: Readonly<Record<string, (expected: Outcome, actual: Outcome) => void>> = {
  'the protocol carries the next sequence number of a mismatch, and not the text about it': (...outcomes) => {
    for (const { error } of outcomes) if (error?.code === 'seq_num_mismatch') error.message = ''
  },
  'the protocol has no field for a scope that permits nothing': ({ error }, actual) => {
    if (error?.field === 'scope' && actual.error !== undefined) actual.error.field ??= 'scope'
  },
  'the protocol has no metadata and no expiry of streams': (...outcomes) => {
    for (const { value } of outcomes) {
      const { items = [], info } = Object(value) as { items?: object[]; info?: object }
      for (const item of [...items, ...(info === undefined ? [] : [info])]) {
        Object.assign(item, { metadata: undefined, expiry: undefined })
      }
    }
  },
  'published clients of the protocol rely on an empty batch without a tail': (...outcomes) => {
    for (const { value } of outcomes) {
      const batch = Object(value) as { count?: number; tail?: unknown }
      if (batch.count === 0) batch.tail = undefined
    }
  },
  'how many batches of a session become durable together depends on their way': ({ inner = [] }, actual) => {
    const acks = [...inner, ...(actual.inner ?? [])].map(({ value }) => Object(value) as { tail?: unknown })
    for (const ack of acks) ack.tail = undefined
  },
  'if a name and another argument are invalid, the client may name the other one': (expected, actual) => {
    const [{ error: one }, { error: other }] = [expected, actual]
    const areInvalid = one?.code === 'invalid' && other?.code === 'invalid'
    if (!areInvalid || one.field === other.field) return
    if (NAMES.includes(one.field) || NAMES.includes(other.field)) Object.assign(other, one)
  },
}
const NAMES: readonly (string | undefined)[] = ['basin', 'stream']

/** A trim applies to all reads from then on over HTTP too: it has a grace period of 10 seconds there. */
const PAUSE_MS = 11_000

/** Servers may accept one prefix of protocol headers only: the hosted service accepts `s2`. */
const PREFIXES = byRun({ quick: [['svc', 's2']], full: [['svc', 's2'], ['svc'], ['s2']] })

describe.each(PREFIXES.map((prefixes) => ({ prefixes })))(
  'with the header prefixes $prefixes',
  ({ prefixes }) => {
    it('a client has the results and errors of an engine in process, for any sequence of calls', async () => {
      await fc.assert(
        fc.asyncProperty(calls, async (drawn) => void (await compare(drawn, prefixes))),
        { numRuns: byRun({ quick: 20, full: 50 }) },
      )
    })

    it('a client has them for producers, closed streams, forks and streams that expire', async () => {
      const seen = new Set<string>()
      const check = async (drawn: DrawnCall[]) => {
        for (const outcome of await compare([ENSURE_BASIN, ...drawn], prefixes)) seen.add(outcome)
      }
      await fc.assert(fc.asyncProperty(extensionCalls, check), { numRuns: 50 })
      expect([...seen]).toEqual(expect.arrayContaining(EXPECTED_OUTCOMES))
    })
  },
)

const ENSURE_BASIN: DrawnCall = { perform: (hw) => hw.ensureBasin('basin-one') }

/** Without each of these outcomes, the calls would prove too little. */
const EXPECTED_OUTCOMES = [
  'duplicate',
  'created',
  'closed',
  'already_appended',
  'producer_fenced',
  'producer_gap',
  'stream_closed',
  'stream_seq_not_increasing',
  'stream_deletion_pending',
  'stream_not_found',
  'invalid',
]

/** Makes the calls on an engine and through a client, and returns their outcomes. */
async function compare(drawn: readonly DrawnCall[], headerPrefixes: string[]): Promise<string[]> {
  const clock = testClock({ now: 1_000_000 })
  const local = await open({ storage: testStorage(), clock })
  const behind = await open({ storage: testStorage(), clock })
  const handler = createHandler(behind, { auth: 'none', headerPrefixes })
  const remote = await connect({ url: 'http://localhost', fetch: handler, clock, random: () => 0.5 })
  const outcomes: string[] = []
  for (const call of drawn) {
    const expected = await outcomeOf(call, local, local)
    const actual = await outcomeOf(call, remote, behind)
    permitIntended(expected, actual)
    expect({ call: `${call}`, ...actual }).toEqual({ call: `${call}`, ...expected })
    const { duplicate, closed, result } = Object(actual.value)
    outcomes.push(actual.error?.code ?? (duplicate ? 'duplicate' : closed ? 'closed' : (result ?? 'ok')))
    await clock.advance(PAUSE_MS)
  }
  await remote.close()
  await Promise.all([local.close(), behind.close()])
  return outcomes
}

function permitIntended(expected: Outcome, actual: Outcome): void {
  for (const permit of Object.values(INTENDED)) permit(expected, actual)
  // Those of the batches of a session.
  for (const [i, inner] of (expected.inner ?? []).entries()) permitIntended(inner, actual.inner?.[i] ?? {})
}
