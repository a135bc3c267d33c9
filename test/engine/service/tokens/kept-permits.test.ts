import { describe, expect, it } from 'vitest'
import { memory } from '../../../../adapters/storage/memory/index.ts'
import { open } from '../../../../src/index.ts'
import type { CatalogChange, Collection } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { wrapped } from '../../../support/index.ts'
import { EVERYTHING, openWithTokens, outcome } from './support.ts'

/** An engine on a storage that may be shared, and its look-ups of tokens. */
async function openCounting(isExclusive: () => boolean) {
  const lookups: string[] = []
  const data = memory()
  const storage = wrapped(data, {}, (session) => ({
    isExclusive,
    get: (collection: Collection, key: string) => {
      if (collection === 'tokens') lookups.push(key)
      return session.get(collection, key)
    },
  }))
  const { hw, clock } = await openWithTokens({ storage })
  const works = (token: string) => outcome(hw.asHolder(token, ['read']))
  const issue = (expiresAt?: Date) =>
    hw.issueAccessToken({ id: 'token', scope: { ops: ['read'] }, expiresAt: expiresAt ?? null })
  return { hw, clock, data, lookups, works, issue }
}

describe('the permit of a token that was used before', () => {
  it('is used again without a look-up while the engine is alone', async () => {
    const { hw, lookups, works, issue } = await openCounting(() => true)
    const token = await issue()
    expect(await works(token)).toBe('ok')
    lookups.length = 0
    expect(await works(token)).toBe('ok')
    expect(lookups).toEqual([])
    await hw.close()
  })

  it('is compared with its document as soon as another engine may have revoked it', async () => {
    let isAlone = true
    const { hw, clock, data, lookups, works, issue } = await openCounting(() => isAlone)
    const token = await issue()
    expect(await works(token)).toBe('ok')
    lookups.length = 0
    isAlone = false
    expect(await works(token)).toBe('ok')
    expect(lookups).toEqual(['token'])
    const other = await open({ storage: data, clock })
    await other.revokeAccessToken('token')
    expect(await works(token)).toBe('authn')
    await other.issueAccessToken({ id: 'token', scope: { ops: ['read'] } })
    expect(await works(token)).toBe('authn')
    await Promise.all([hw.close(), other.close()])
  })

  it('is forgotten when this engine revokes the token', async () => {
    const { hw, works, issue } = await openCounting(() => true)
    const token = await issue()
    expect(await works(token)).toBe('ok')
    await hw.revokeAccessToken('token')
    expect(await works(token)).toBe('authn')
    const next = await issue()
    expect([await works(token), await works(next)]).toEqual(['authn', 'ok'])
    await hw.close()
  })

  it('is not kept if the token is revoked while it is looked up', async () => {
    const { hw, works, issue } = await openCounting(() => true)
    const token = await issue()
    const [first] = await Promise.all([works(token), hw.revokeAccessToken('token')])
    expect(['ok', 'authn']).toContain(first)
    expect(await works(token)).toBe('authn')
    await hw.close()
  })

  it('is compared with its document once a revocation has failed, which may still take effect', async () => {
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
    const following = hw.as(token).basin('basin').stream('stream').follow().toArray()
    const ended = outcome(following)
    await clock.settle()
    expect(await outcome(hw.revokeAccessToken('token'))).toBe('storage')
    expect([await works(), await works()]).toEqual(['ok', 'ok'])
    await late()
    expect(await works()).toBe('authn')
    await clock.advance('1s')
    expect(await ended).toBe('authn')
    await hw.close()
  })

  it('is forgotten when the root token is replaced', async () => {
    const { hw, works } = await openCounting(() => true)
    const root = (await hw.createRootToken())!
    expect(await works(root)).toBe('ok')
    await hw.setRootToken('another-root-token')
    expect([await works(root), await works('another-root-token')]).toEqual(['authn', 'ok'])
    await hw.close()
  })

  it('expires with the token, and is compared with its document until then', async () => {
    const { hw, clock, lookups, works, issue } = await openCounting(() => true)
    const token = await issue(new Date(clock.now() + 1_000))
    expect(await works(token)).toBe('ok')
    lookups.length = 0
    await clock.advance(999)
    expect([await works(token), lookups]).toEqual(['ok', ['token']])
    await clock.advance(1)
    expect(await works(token)).toBe('authn')
    await hw.close()
  })
})
