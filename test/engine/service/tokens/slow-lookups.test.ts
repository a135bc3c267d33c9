import { expect, it } from 'vitest'
import { open } from '../../../../src/index.ts'
import { testClock, testStorage, wrapped } from '../../../support/index.ts'
import { EVERYTHING, openWithTokens, outcome } from './support.ts'

it('ends the sessions of 200 tokens within a second of their revocation on a slow storage', async () => {
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
    const cursor = (await view.basin('basin').stream('stream').openCursor({}, {}))!
    void outcome(Promise.resolve(cursor.next())).then((code) => ends.push(code))
  }
  slow = true
  await other.revokeAccessToken('t199')
  await clock.advance('1s')
  expect(ends).toEqual(['authn'])
})

it('a lookup that never returns does not stop the watch of other tokens', async () => {
  const clock = testClock()
  const shared = testStorage()
  let isHanging = false
  const storage = wrapped(shared, {}, (session) => ({
    get: (collection, key) =>
      isHanging && key === 'a' ? new Promise(() => {}) : session.get(collection, key),
  }))
  const { hw } = await openWithTokens({ storage, clock })
  const other = await open({ storage: shared, clock })
  const ends: string[] = []
  for (const id of ['a', 'b']) {
    const view = hw.as(await hw.issueAccessToken({ id, scope: EVERYTHING }))
    const cursor = (await view.basin('basin').stream('stream').openCursor({}, {}))!
    void outcome(Promise.resolve(cursor.next())).then((code) => ends.push(id + code))
  }
  isHanging = true
  await clock.advance('1s')
  await other.revokeAccessToken('b')
  await clock.advance('5s')
  expect(ends).toEqual(['bauthn'])
})
