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
  state.lookUps = 0
  const caller = await hw.asHolder(token, ['list-basins', 'read'])
  /** A call that the token does not permit, as long as it is valid. */
  const use = () => outcome(caller.listBasins())
  expect(await use()).toBe('permission_denied')
  expect(state.lookUps).toBe(1)
  return { hw, clock, other, state, issue, use }
}

it('a caller looks its token up once for calls within a second', async () => {
  const { clock, state, use } = await openUsed()
  await Promise.all([use(), use()])
  expect(state.lookUps).toBe(1)
  await clock.advance('1s')
  await use()
  expect(state.lookUps).toBe(2)
})

it.each<[string, (used: Awaited<ReturnType<typeof openUsed>>) => Promise<unknown>]>([
  ['was revoked', ({ hw }) => hw.revokeAccessToken('token')],
  [
    'is being looked up while it is revoked',
    async ({ hw, clock, use }) => {
      await clock.advance('1s')
      await Promise.all([use(), hw.revokeAccessToken('token')])
    },
  ],
  ['was replaced', ({ hw, issue }) => hw.revokeAccessToken('token').then(() => issue(hw))],
  [
    'was replaced by another engine, within a second',
    async ({ clock, other, issue }) => {
      await other.revokeAccessToken('token')
      await issue(other)
      await clock.advance('1s')
    },
  ],
])('a caller is refused once its token %s', async (_, end) => {
  const used = await openUsed()
  await end(used)
  expect(await used.use()).toBe('authn')
})

it('a caller is refused exactly when its token expires', async () => {
  const { clock, use } = await openUsed({ expiresInMs: 500 })
  await clock.advance(499)
  expect(await use()).toBe('permission_denied')
  await clock.advance(1)
  expect(await use()).toBe('authn')
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
})
