import { beforeEach, describe, expect, it } from 'vitest'
import { type AccessTokenInput, type Engine, open } from '../../../src/index.ts'
import type { ResourceSet } from '../../../src/model/access.ts'
import { letPass, testStorage } from '../../support/index.ts'
import { type AccessEngine, EVERYTHING, failure, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
let hw: Engine
beforeEach(async () => {
  engine = await openWithTokens()
  hw = engine.hw
})

const READS = { ops: ['read'] } as const
const issue = (token: Partial<AccessTokenInput>, by = hw) =>
  by.issueAccessToken({ id: 'token', scope: READS, ...token })
const works = (token: string) => outcome(hw.asHolder(token, ['read']))
const REFUSED = /^(permission_denied|invalid)$/
const ids = async (query = {}) => (await hw.listAccessTokens(query)).items.map(({ id }) => id)

describe('issuing a token', () => {
  it.each(['a', 'x'.repeat(96), 'é'.repeat(48), '...', 'team/1', '\u0001', ' '])(
    'accepts the id %j',
    async (id) => {
      const token = await issue({ id })
      expect(await works(token)).toBe('ok')
      expect(await ids()).toEqual([id])
      expect(token).toMatch(/^[A-Za-z0-9+/]+=*$/)
    },
  )

  it('rejects a token that permits nothing', async () => {
    for (const scope of [{}, { ops: [] }, { opGroups: { account: {}, basin: { read: false } } }]) {
      const issuing = issue({ scope: { ...scope, basins: { prefix: '' } } })
      await expect(issuing).rejects.toThrow('Access token permissions cannot be empty')
    }
    expect(await ids()).toEqual([])
  })

  it('rejects an id in use, and keeps the existing token', async () => {
    const token = await issue({})
    await expect(issue({})).rejects.toMatchObject({
      code: 'resource_already_exists',
      message: 'access token `token` already exists',
    })
    expect(await works(token)).toBe('ok')
    const outcomes = await Promise.all([outcome(issue({ id: 'new' })), outcome(issue({ id: 'new' }))])
    expect(outcomes.sort()).toEqual(['ok', 'resource_already_exists'])
  })

  it('accepts the id of a revoked or expired token, whose secret stays invalid', async () => {
    const first = await issue({})
    await hw.revokeAccessToken('token')
    const second = await issue({ expiresAt: new Date(engine.clock.now() + 1000) })
    await engine.clock.advance(999)
    expect(await outcome(issue({}))).toBe('resource_already_exists')
    await engine.clock.advance(1)
    const third = await issue({})
    expect(await Promise.all([first, second, third].map(works))).toEqual(['authn', 'authn', 'ok'])
  })
})

describe('the expiry of a token', () => {
  const inMs = (ms: number) => new Date(engine.clock.now() + ms)

  it.each([0, -1, Number.NaN])('must be in the future: in %d ms', async (ms) => {
    expect(await failure(issue({ expiresAt: inMs(ms) }))).toMatchObject({
      code: 'invalid',
      field: 'expiresAt',
    })
  })

  it('defaults to that of the issuer, and is never later', async () => {
    const expiresAt = inMs(1000)
    const issuer = await engine.issued({ id: 'issuer', expiresAt })
    await issue({ id: 'default' }, issuer)
    await issue({ id: 'null', expiresAt: null }, issuer)
    await issue({ id: 'same', expiresAt }, issuer)
    await issue({ id: 'sooner', expiresAt: inMs(999) }, issuer)
    expect(await outcome(issue({ id: 'later', expiresAt: inMs(1001) }, issuer))).toBe('permission_denied')
    await issue({ id: 'of the owner' })
    const expiries = (await hw.listAccessTokens()).items.map((info) => [info.id, info.expiresAt])
    expect(Object.fromEntries(expiries)).toEqual({
      issuer: expiresAt,
      default: expiresAt,
      null: expiresAt,
      same: expiresAt,
      sooner: inMs(999),
      'of the owner': null,
    })
  })
})

describe('a token permits no more than its issuer', () => {
  const issuerScope: AccessTokenInput['scope'] = {
    basins: { prefix: 'mine' },
    streams: { exact: 'logs' },
    accessTokens: { prefix: 'team/' },
    ops: ['issue-access-token', 'read', 'append'],
  }

  it.each<[string, AccessTokenInput['scope'], RegExp]>([
    ['the same', issuerScope, /^ok$/],
    ['a group more', { opGroups: { stream: { read: true } } }, REFUSED],
    ['another basin', { ...issuerScope, basins: { exact: 'other' } }, REFUSED],
  ])('%s', async (_, scope, expected) => {
    const issuer = await engine.issued({ scope: issuerScope })
    const issued = await outcome(issue({ id: 'team/a', scope }, issuer))
    expect(issued).toMatch(expected)
    expect(await ids()).toEqual(issued === 'ok' ? ['team/a', 'token'] : ['token'])
  })

  it('even if the input changes after the check', async () => {
    const issuer = await engine.issued({ scope: issuerScope })
    for (let changesAfter = 0; changesAfter < 12; changesAfter++) {
      let reads = 0
      const changing = (first: string, then: string) => (reads++ < changesAfter ? first : then)
      const scope = {
        ops: ['read'] as const,
        streams: {
          get exact() {
            return changing('logs', 'not mine')
          },
        },
      }
      await outcome(issue({ id: `team/${changesAfter}`, scope }, issuer))
      const input = {
        get id() {
          return changing(`team/id-${changesAfter}`, 'boss')
        },
        scope: { ops: ['read'] as const },
      }
      reads = 0
      await outcome(issuer.issueAccessToken(input))
    }
    for (const { id, scope } of (await hw.listAccessTokens({ prefix: 'team/' })).items) {
      expect([id, scope.streams]).toEqual([id, id.startsWith('team/id') ? null : { exact: 'logs' }])
    }
    expect(await ids({ prefix: 'boss' })).toEqual([])
  })

  it('and its id must be in the scope of the issuer, whether it is in use or not', async () => {
    const issuer = await engine.issued({ scope: issuerScope })
    await issue({ id: 'boss' })
    for (const id of ['boss', 'nobody', 'team']) {
      expect(await outcome(issue({ id }, issuer))).toBe('permission_denied')
    }
  })
})

describe('listing tokens', () => {
  it('returns everything but the secret', async () => {
    const token = await issue({
      id: 'a',
      autoPrefixStreams: true,
      scope: { streams: { prefix: 'p/' }, opGroups: { stream: { read: true } }, ops: ['trim', 'append'] },
    })
    const { items } = await hw.listAccessTokens()
    const none = { read: false, write: false }
    expect(items).toEqual([
      {
        id: 'a',
        expiresAt: null,
        autoPrefixStreams: true,
        scope: {
          basins: null,
          streams: { prefix: 'p/' },
          accessTokens: null,
          opGroups: { account: none, basin: none, stream: { read: true, write: false } },
          ops: ['append', 'trim'],
        },
      },
    ])
    expect(JSON.stringify(items)).not.toContain(token.slice(0, 12))
  })
})

describe('a token that has expired', () => {
  const DAY_MS = 86_400_000

  it('is listed for a day and then removed', { tags: ['slow'] }, async () => {
    const expiresAt = new Date(engine.clock.now() + 1000)
    for (const id of ['a', 'b', 'c']) await issue({ id, expiresAt })
    // More than are looked at in one go.
    for (let i = 0; i < 150; i++) await issue({ id: `page ${i}`, expiresAt })
    await issue({ id: 'for ever' })
    await issue({ id: 'later', expiresAt: new Date(engine.clock.now() + 3 * DAY_MS) })
    await engine.clock.advance(1000)
    await issue({ id: 'b' })
    await hw.revokeAccessToken('c')
    await letPass(engine.clock, DAY_MS - 120_000)
    expect(await ids()).toHaveLength(154)
    // Looked for once an hour.
    await letPass(engine.clock, 7_200_000)
    expect(await ids()).toEqual(['b', 'for ever', 'later'])
  })
})

describe('revoking a token', () => {
  it('takes effect on the next call', async () => {
    const token = await issue({})
    const view = hw.as(token)
    expect(await outcome(view.listBasins())).toBe('permission_denied')
    await hw.revokeAccessToken('token')
    expect(await outcome(view.listBasins())).toBe('authn')
    expect(await ids()).toEqual([])
    await expect(hw.revokeAccessToken('token')).rejects.toMatchObject({
      code: 'access_token_not_found',
      message: 'access token `token` not found',
    })
  })

  it('succeeds once if two callers do it at the same time', async () => {
    await issue({})
    const outcomes = [outcome(hw.revokeAccessToken('token')), outcome(hw.revokeAccessToken('token'))]
    expect((await Promise.all(outcomes)).sort()).toEqual(['access_token_not_found', 'ok'])
  })
})

describe('tokens in the storage', () => {
  it('survive the engine', async () => {
    const storage = testStorage()
    const first = await openWithTokens({ storage })
    const token = await issue({}, first.hw)
    const root = await first.hw.createRootToken()
    await first.hw.close()
    const reopened = await open({ storage, clock: first.clock })
    expect(await outcome(reopened.asHolder(token, ['read']))).toBe('ok')
    expect(await outcome(reopened.asHolder(token, ['append']))).toBe('permission_denied')
    expect(await outcome(reopened.asHolder(root!, ['append']))).toBe('ok')
    await reopened.close()
  })

  it('are shared by two engines, with revocations at once', async () => {
    const storage = testStorage()
    const [first, second] = [await openWithTokens({ storage }), await openWithTokens({ storage })]
    const token = await issue({}, first.hw)
    const view = second.hw.as(token)
    expect(await outcome(view.listBasins())).toBe('permission_denied')
    expect(await outcome(issue({}, second.hw))).toBe('resource_already_exists')
    await first.hw.revokeAccessToken('token')
    expect(await outcome(view.listBasins())).toBe('authn')
    await Promise.all([first.hw.close(), second.hw.close()])
  })
})

it('account metrics name only the basins in scope', async () => {
  await hw.basin('other').stream('stream').append('a')
  const end = engine.clock.now() + 60_000
  const query = { set: 'active-basins', start: end - 3_600_000, end } as const
  const labels = async (view: Engine) =>
    (await view.metrics(query)).flatMap((metric) => (metric.kind === 'label' ? metric.values : []))
  expect(await labels(hw)).toEqual(['basin', 'other'])
  const scopes: [ResourceSet | null, string[]][] = [
    [{ prefix: '' }, ['basin', 'other']],
    [{ exact: 'basin' }, ['basin']],
    [{ prefix: 'o' }, ['other']],
    [null, []],
  ]
  for (const [index, [basins, expected]] of scopes.entries()) {
    const view = await engine.issued({ id: `${index}`, scope: { ...EVERYTHING, basins } })
    expect(await labels(view)).toEqual(expected)
  }
})
