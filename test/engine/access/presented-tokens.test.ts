import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine } from '../../../src/index.ts'
import type { Collection, JsonValue } from '../../../src/storage/contract.ts'
import { testStorage, wrapped } from '../../support/index.ts'
import { titled } from '../../support/titled.ts'
import { type AccessEngine, failure, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
/** The look-ups of tokens in the storage. Others come in the background. */
let calls: string[]
/** All that was written to the catalog. */
let written: JsonValue[]
beforeEach(async () => {
  calls = []
  written = []
  const storage = wrapped(testStorage(), {}, (session) => ({
    get: (collection: Collection, key: string) => {
      if (collection === 'tokens') calls.push(key)
      return session.get(collection, key)
    },
    commit: (changes) => {
      written.push(changes as unknown as JsonValue)
      return session.commit(changes)
    },
  }))
  engine = await openWithTokens({ storage })
  hw = engine.hw
})

const issue = (id = 'token') => hw.issueAccessToken({ id, scope: { ops: ['read'] } })
const works = (token: string) => outcome(hw.asHolder(token, ['read']))
const REFUSAL = { code: 'authn', status: 401, message: 'a valid access token is required' }
const presented = (token: unknown) => failure(hw.asHolder(token as string, ['read']))

/** A token with this id and the secret of another one. */
function withId(token: string, id: string): string {
  const secret = atob(token).slice(0, 32)
  return btoa(secret + id)
}

describe('a presented token', () => {
  it('works exactly as issued', async () => {
    const token = await issue()
    await issue('other')
    await hw.createRootToken()
    expect(await works(token)).toBe('ok')
    const others = {
      empty: '',
      'a space': ' ',
      'no base64': 'not base64!',
      'NUL characters': '\0'.repeat(44),
      'an id alone': btoa('token'),
      'without its last character': token.slice(0, -1),
      'with a character more': `${token}A`,
      'with white space': ` ${token}`,
      'in another alphabet': token.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
      'in another case': token.toLowerCase(),
      'the id of another': withId(token, 'other'),
      'an id that nobody has': withId(token, 'nobody'),
      'no id': withId(token, ''),
      'an id that is too long': withId(token, 'x'.repeat(97)),
      'an id that is no UTF-8': btoa(`${atob(token).slice(0, 32)}\xff`),
      'another secret': btoa(`${'x'.repeat(32)}token`),
    }
    for (const [what, other] of Object.entries(others))
      expect(await presented(other), what).toMatchObject(REFUSAL)
    expect(await works(token)).toBe('ok')
  })

  it.each(['', 'x'.repeat(1025)])(
    'is rejected without a read of the storage if its length is wrong (%#)',
    async (token) => {
      calls = []
      expect(await presented(token)).toMatchObject(REFUSAL)
      expect(calls).toEqual([])
    },
  )

  // A call from JavaScript, or with an absent header, must not become the owner.
  it.each([undefined, null])('does not make the caller the owner if it is empty: %s', async (nothing) => {
    expect(await presented(nothing)).toMatchObject(REFUSAL)
  })

  it('appears neither in the storage nor in errors', async () => {
    const token = await issue()
    const root = (await hw.createRootToken())!
    await hw.setRootToken('a-root-token-of-my-own')
    const stored = JSON.stringify(written)
    const secret = atob(token).slice(0, 32)
    const hidden = [token, root, btoa(secret), secret, 'a-root-token-of-my-own']
    for (const text of hidden) expect(stored).not.toContain(text)
    // The first 40 characters hold nothing but the secret.
    expect(stored).not.toContain(token.slice(0, 40))
    const errors = [
      await failure(hw.as(`${token}x`).listBasins()),
      await failure(hw.as(token).listBasins()),
      await failure(hw.setRootToken(`${token} ${token}`)),
    ]
    for (const error of errors) expect(`${error} ${error?.stack}`).not.toContain(token.slice(0, 40))
  })

  it('keeps its own permissions on another connection', async () => {
    const view = hw.as(await issue())
    const same = view.onConnection({})
    expect(await outcome(same.listBasins())).toBe('permission_denied')
    // A caller without a token is anonymous, not the caller of the previous request.
    expect(await outcome(view.asHolder(undefined, ['list-basins']))).toBe('authn')
    expect(await outcome(hw.asHolder(undefined, ['list-basins']))).toBe('authn')
    expect(await outcome(view.as('other').listBasins())).toBe('authn')
    expect(await outcome(hw.onConnection({}).listBasins())).toBe('ok')
  })
})

describe('the root token', () => {
  it('is created once and permits everything', async () => {
    const token = await hw.createRootToken()
    expect(token).toMatch(/^[A-Za-z0-9+/]{43}=$/)
    expect(await hw.createRootToken()).toBeUndefined()
    expect(await outcome(hw.as(token!).createBasin('new-basin'))).toBe('ok')
    expect((await hw.listAccessTokens()).items).toEqual([])
  })

  it.each(['x'.repeat(16), 'x'.repeat(1024), '!~'.repeat(8)])('can be set (%#)', async (token) => {
    const before = (await hw.createRootToken())!
    await hw.setRootToken(token)
    expect(await Promise.all([works(before), works(token)])).toEqual(['authn', 'ok'])
    expect(await hw.createRootToken()).toBeUndefined()
    await hw.setRootToken(token)
    expect(await works(token)).toBe('ok')
  })

  it.each(
    titled(
      ['', 'x'.repeat(15), 'x'.repeat(1025), `${'x'.repeat(16)} `, `${'x'.repeat(16)}\n`, 'é'.repeat(16)].map(
        (token) => [token],
      ),
    ),
  )('cannot be %s', async (_, token) => {
    const before = (await hw.createRootToken())!
    const error = await failure(hw.setRootToken(token))
    expect([error?.code, error?.field]).toEqual(['invalid', 'token'])
    expect(error?.message).not.toContain('xxx')
    expect(await works(before)).toBe('ok')
  })

  it('cannot be reached as an issued token', async () => {
    const root = (await hw.createRootToken())!
    await issue('root-token')
    await hw.revokeAccessToken('root-token')
    expect(await outcome(hw.revokeAccessToken('root-token'))).toBe('access_token_not_found')
    expect(await works(root)).toBe('ok')
  })
})

describe('a method for the owner only', () => {
  it('rejects every token', async () => {
    const root = (await hw.createRootToken())!
    for (const token of [root, await issue(), 'nonsense']) {
      const view = hw.as(token)
      expect(await outcome(view.close())).toBe('permission_denied')
      expect(await outcome(view.checkStorage())).toBe('permission_denied')
      // `await using` must not fail where there is nothing to close.
      expect(await outcome(view[Symbol.asyncDispose]())).toBe('ok')
      expect(await outcome((async () => view.stats())())).toBe('permission_denied')
      expect(await outcome(view.createRootToken())).toBe('permission_denied')
      expect(await outcome(view.setRootToken('x'.repeat(16)))).toBe('permission_denied')
    }
    expect(await works(root)).toBe('ok')
    expect(hw.stats().openReads).toBe(0)
  })
})
