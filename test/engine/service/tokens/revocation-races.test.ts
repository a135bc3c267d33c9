import { expect, it } from 'vitest'
import { open } from '../../../../src/index.ts'
import { deferred, gated, testStorage, wrapped } from '../../../support/index.ts'
import { EVERYTHING, openWithTokens, outcome } from './support.ts'

const LARGE_BODY = 'x'.repeat(900_000)

it.each(['this engine', 'another engine'])(
  'a token that is revoked by %s while it issues another leaves none behind',
  async (where) => {
    let hold: Promise<void> | undefined
    const shared = testStorage()
    const storage = wrapped(shared, {}, (session) => ({
      commit: async (changes) => {
        if (changes.some((c) => c.kind === 'put' && c.collection === 'tokens' && c.key === 'child'))
          await hold
        return session.commit(changes)
      },
    }))
    const { hw, clock, issued } = await openWithTokens({ storage })
    const revoker = where === 'this engine' ? hw : await open({ storage: shared, clock })
    const view = await issued()
    const gate = deferred()
    hold = gate.promise
    const child = view.issueAccessToken({ id: 'child', scope: EVERYTHING })
    await clock.settle()
    await revoker.revokeAccessToken('token') // acknowledged: refused from now on
    gate.resolve()
    const token = await child.catch((e) => e.code)
    expect(await outcome(hw.as(token).listBasins())).toBe('authn')
  },
)

it('a session whose token is revoked drops the appends that wait for room', async () => {
  const storage = gated(testStorage())
  const { hw, clock, issued } = await openWithTokens({
    storage,
    limits: { sessionInFlightBytes: 1024 * 1024 },
  })
  const view = await issued()
  const session = await view.basin('basin').stream('stream').appendSession()
  storage.holding = true
  const tickets = Array.from({ length: 10 }, () => session.submit(LARGE_BODY))
  const outcomes = tickets.map((t) => outcome(t.then((ticket) => ticket.ack())))
  await clock.settle()
  await hw.revokeAccessToken('token')
  await clock.settle()
  storage.holding = false
  storage.release()
  const results = await Promise.all(outcomes)
  // The append in flight reports its outcome; the others are rejected.
  expect(results.slice(1)).toEqual(Array(9).fill('authn'))
  const { seqNum } = await hw.basin('basin').stream('stream').checkTail()
  // One was in flight; the nine that waited were never admitted.
  expect(seqNum).toBeLessThanOrEqual(1)
  await hw.close()
})

it('a session ends within a second of the revocation, even on a slow storage', async () => {
  const storage = gated(testStorage())
  const { hw, clock, issued } = await openWithTokens({ storage })
  const view = await issued()
  const session = await view.basin('basin').stream('stream').appendSession()
  const ends: string[] = []
  session.acks$.subscribe({ error: (e) => ends.push(e.code) })
  storage.holding = true
  void session
    .submit('x')
    .then((t) => t.ack())
    .catch(() => {})
  await clock.settle()
  await hw.revokeAccessToken('token')
  await clock.advance('5s')
  const received = [...ends]
  storage.holding = false
  storage.release()
  await clock.settle()
  await hw.close()
  expect(received).toEqual(['authn'])
})
