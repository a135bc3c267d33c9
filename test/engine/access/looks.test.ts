import { expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { wrapped } from '../wrapped-storage.ts'
import { EVERYTHING, openWithTokens, outcome } from './support.ts'

it('200 open tokens on a storage that takes 20 ms a look: revoked elsewhere, ended within a second', async () => {
  const clock = testClock()
  const shared = testStorage()
  let slow = false
  const storage = wrapped(shared, {}, (session) => ({
    get: async (collection, key) => {
      if (slow && collection === 'tokens') await new Promise<void>((r) => clock.schedule(20, r))
      return session.get(collection, key)
    },
  }))
  const { hw } = await openWithTokens({ storage, clock })
  const other = await open({ storage: shared, clock })
  const ends: string[] = []
  for (let i = 0; i < 200; i++) {
    const view = hw.as(await hw.issueAccessToken({ id: `t${i}`, scope: EVERYTHING }))
    const cursor = (await view.basin('basin').stream('stream').openRead())!
    void outcome(cursor.next()).then((code) => ends.push(code))
  }
  slow = true
  await other.revokeAccessToken('t199')
  await clock.advance('1s')
  expect(ends).toEqual(['authn'])
})

it('one look that never comes back does not end the watch of all others', async () => {
  const clock = testClock()
  const shared = testStorage()
  let hang = false
  const storage = wrapped(shared, {}, (session) => ({
    get: (collection, key) => (hang && key === 'a' ? new Promise(() => {}) : session.get(collection, key)),
  }))
  const { hw } = await openWithTokens({ storage, clock })
  const other = await open({ storage: shared, clock })
  const ends: string[] = []
  for (const id of ['a', 'b']) {
    const view = hw.as(await hw.issueAccessToken({ id, scope: EVERYTHING }))
    const cursor = (await view.basin('basin').stream('stream').openRead())!
    void outcome(cursor.next()).then((code) => ends.push(id + code))
  }
  hang = true
  await clock.advance('1s')
  await other.revokeAccessToken('b')
  await clock.advance('5s')
  expect(ends).toEqual(['bauthn'])
})
