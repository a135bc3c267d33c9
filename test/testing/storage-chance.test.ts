import { expect, test } from 'vitest'
import { faultyHandler, seededRandom } from '../../adapters/testing/index.ts'
import { requestFaultsAtRandom, storageFaultsAtRandom } from '../support/random-faults.ts'
import { openFaulty, outcome } from './storage-support.ts'

/** The faults of 50 calls, each of which fails at random. */
async function faultsOf(seed: number) {
  const { storage, session } = await openFaulty()
  const random = seededRandom(seed)
  storage.fail('get', { when: () => random() < 0.2 })
  storage.fail('get', { after: true, when: () => random() < 0.2 })
  for (let i = 0; i < 50; i++) await outcome(session.get('streams', 'a'))
  return storage.log.filter((fault) => fault.fault === 'failure')
}

test('the faults of a seed are the same, and differ from those of another', async () => {
  const [first, repeated, other] = [await faultsOf(7), await faultsOf(7), await faultsOf(8)]
  expect(first).toEqual(repeated)
  expect(first).not.toEqual(other)
  expect(new Set(first.map(({ after }) => after))).toEqual(new Set([false, true]))
})

test('faults are repeated, call by call, from the log', async () => {
  const faults = await faultsOf(7)
  const { storage, session } = await openFaulty()
  for (const { call, kind, after } of faults) storage.fail('get', { nth: call, kind, after })
  for (let i = 0; i < 50; i++) await outcome(session.get('streams', 'a'))
  expect(storage.log).toEqual(faults)
})

test('campaigns meet every kind of fault', async () => {
  const { storage, session, clock } = await openFaulty({ notifications: 'hint' })
  storageFaultsAtRandom(storage, 1, { head: { before: 0.2, after: 0.2, delay: [1, 3] } })
  for (let i = 0; i < 50; i++) {
    const call = outcome(session.head('log'))
    await clock.advance(10)
    await call
  }
  const kinds = storage.log.map((entry) => `${entry.fault} ${'after' in entry && entry.after}`)
  expect(new Set(kinds)).toEqual(new Set(['delay false', 'delay true', 'failure false', 'failure true']))

  const handler = faultyHandler(() => new Response('x'.repeat(2_000)), { clock })
  const rates = { refuse: 0.1, drop: 0.1, unavailable: 0.1, duplicate: 0.1, loseResponse: 0.1, cut: 0.2 }
  requestFaultsAtRandom(handler, 1, { ...rates, delay: [0, 9] })
  for (let i = 0; i < 100; i++) {
    const done = handler(new Request('http://localhost/'))
      .then((response) => response.text())
      .catch(() => {})
    await clock.advance(20)
    await done
  }
  expect(new Set(handler.log.map(({ fault }) => fault))).toEqual(
    new Set(['refused', 'dropped', 'responded', 'duplicated', 'response lost', 'cut', 'delay']),
  )
})
