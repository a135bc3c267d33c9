import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import type { CatalogChange, Collection } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { wrapped } from '../../support/index.ts'
import { EVERYTHING, openWithTokens, outcome } from './support.ts'

/** Two engines on a storage, a token that was used once, and the look-ups since. */
async function openUsed({ expiresInMs }: { readonly expiresInMs?: number } = {}) {
  const data = memory()
  const state = { lookUps: 0 }
  const storage = wrapped(data, {}, (session) => ({
    get: (collection: Collection, key: string) => {
      if (collection === 'tokens') state.lookUps++
      return session.get(collection, key)
    },
  }))
  const { hw, clock } = await openWithTokens({ storage })
  const other = await open({ storage: data, clock })
  onTestFinished(async () => {
    await Promise.all([hw.close(), other.close()])
  })
  const expiresAt = expiresInMs === undefined ? null : new Date(clock.now() + expiresInMs)
  const issue = (by: Engine) => by.issueAccessToken({ id: 'token', scope: { ops: ['read'] }, expiresAt })
  const token = await issue(hw)
  const works = (presented = token) => outcome(hw.asHolder(presented, ['read']))
  expect(await works()).toBe('ok')
  state.lookUps = 0
  return { hw, clock, other, state, token, issue, works }
}

it('a caller looks its token up once for calls within a second', async () => {
  const { hw, clock, state, token } = await openUsed()
  const caller = await hw.asHolder(token, ['list-basins', 'read'])
  const lists = () => outcome(caller.basin('basin').stream('stream').checkTail())
  await Promise.all([lists(), lists()])
  expect(state.lookUps).toBe(1)
  await clock.advance('1s')
  await lists()
  expect(state.lookUps).toBe(2)
})

it.each<[string, (used: Awaited<ReturnType<typeof openUsed>>) => Promise<unknown>]>([
  ['was revoked', ({ hw }) => hw.revokeAccessToken('token')],
  [
    'is being looked up while it is revoked',
    ({ hw, works }) => Promise.all([works(), hw.revokeAccessToken('token')]),
  ],
  ['was replaced', ({ hw, issue }) => hw.revokeAccessToken('token').then(() => issue(hw))],
  [
    'was replaced by another engine',
    async ({ other, issue }) => {
      await other.revokeAccessToken('token')
      await issue(other)
    },
  ],
])('a token that was used before is refused once it %s', async (_, end) => {
  const used = await openUsed()
  await end(used)
  expect(await used.works()).toBe('authn')
})

it('a token that was used before is refused exactly when it expires', async () => {
  const { clock, works } = await openUsed({ expiresInMs: 1_000 })
  await clock.advance(999)
  expect(await works()).toBe('ok')
  await clock.advance(1)
  expect(await works()).toBe('authn')
})

it('a root token that was used before is refused once it is replaced', async () => {
  const { hw, works } = await openUsed()
  const root = (await hw.createRootToken())!
  expect(await works(root)).toBe('ok')
  await hw.setRootToken('another-root-token')
  expect([await works(root), await works('another-root-token')]).toEqual(['authn', 'ok'])
})

it('a token is refused, and its sessions end, when a revocation that failed takes effect late', async () => {
  let late = async () => {}
  const storage = wrapped(memory(), { shared: false }, (session) => ({
    commit: async (changes: readonly CatalogChange[]) => {
      if (!changes.some(({ kind }) => kind === 'delete')) return session.commit(changes)
      late = () => session.commit(changes)
      throw new StorageFailure('io', 'no answer', { nothingWritten: false })
    },
  }))
  const { hw, clock } = await openWithTokens({ storage })
  const token = await hw.issueAccessToken({ id: 'token', scope: EVERYTHING })
  const works = () => outcome(hw.asHolder(token, ['read']))
  const ended = outcome(hw.as(token).basin('basin').stream('stream').follow().toArray())
  await clock.settle()
  expect(await outcome(hw.revokeAccessToken('token'))).toBe('storage')
  expect([await works(), await works()]).toEqual(['ok', 'ok'])
  await late()
  expect(await works()).toBe('authn')
  await clock.advance('1s')
  expect(await ended).toBe('authn')
  await hw.close()
})
