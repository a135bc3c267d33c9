import { describe, expect, it } from 'vitest'
import {
  type AccessScopeInput,
  type AccessTokenInput,
  accessScope,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../../src/model/access.ts'
import { OPERATIONS } from '../../src/model/operations.ts'
import { refusal } from './refusal.ts'

describe('operations', () => {
  it('are those of wire-behaviour.md 9.4, in its order', () => {
    expect(OPERATIONS.join(' ')).toBe(
      'list-basins create-basin delete-basin reconfigure-basin get-basin-config issue-access-token ' +
        'revoke-access-token list-access-tokens list-streams create-stream delete-stream get-stream-config ' +
        'reconfigure-stream check-tail append read trim fence account-metrics basin-metrics stream-metrics ' +
        'list-locations get-default-location set-default-location',
    )
  })
})

describe('the id of an access token (wire-behaviour.md 8.1)', () => {
  it.each<[string, string | undefined]>([
    ['a', undefined],
    ['team/a', undefined],
    ['\0', undefined],
    ['...', undefined],
    ['x'.repeat(96), undefined],
    ['é'.repeat(48), undefined],
    ['', 'access token id must not be empty'],
    ['.', 'access token id must not be "." or ".."'],
    ['..', 'access token id must not be "." or ".."'],
    ['x'.repeat(97), 'access token id must not exceed 96 bytes in length'],
    ['é'.repeat(49), 'access token id must not exceed 96 bytes in length'],
    ['\ud800', 'access token id must be valid Unicode'],
  ])('%j: %s', (id, problem) => {
    expect(accessTokenIdProblem(id)).toBe(problem)
  })

  it.each<[string, string | undefined]>([
    ['', undefined],
    ['.', undefined],
    ['x'.repeat(96), undefined],
    ['x'.repeat(97), 'access token start-after must not exceed 96 bytes in length'],
    ['\udc00', 'access token start-after must be valid Unicode'],
  ])('as part of a query %j: %s', (text, problem) => {
    expect(accessTokenPrefixProblem(text, 'start-after')).toBe(problem)
  })
})

describe('a resource set (wire-behaviour.md 9.1)', () => {
  it.each<[ResourceKind, ResourceSet, RegExp | undefined]>([
    ['basins', { exact: '' }, undefined],
    ['basins', { prefix: '' }, undefined],
    ['basins', { exact: 'b' }, undefined],
    ['basins', { exact: 'ends-' }, /^basin name must end/],
    ['basins', { exact: 'Big' }, /^basin name must begin/],
    ['basins', { exact: 'b'.repeat(49) }, /^basin name must not exceed 48 bytes/],
    ['basins', { prefix: 'ends-' }, undefined],
    ['basins', { prefix: '-' }, /^basin prefix must begin/],
    ['basins', { prefix: 'b'.repeat(49) }, /^basin prefix must not exceed 48 bytes/],
    ['streams', { exact: '' }, undefined],
    ['streams', { prefix: '' }, undefined],
    ['streams', { prefix: '..' }, undefined],
    ['streams', { exact: '..' }, /^stream name must not be/],
    ['streams', { exact: 's'.repeat(513) }, /^stream name must not exceed 512 bytes/],
    ['streams', { prefix: 's'.repeat(512) }, undefined],
    ['streams', { prefix: 's'.repeat(513) }, /^stream prefix must not exceed 512 bytes/],
    ['streams', { prefix: '\ud800' }, /^stream prefix must be valid Unicode/],
    ['accessTokens', { exact: '' }, undefined],
    ['accessTokens', { prefix: '' }, undefined],
    ['accessTokens', { exact: '.' }, /^access token id must not be/],
    ['accessTokens', { exact: 't'.repeat(97) }, /^access token id must not exceed 96 bytes/],
    ['accessTokens', { prefix: 't'.repeat(97) }, /^access token prefix must not exceed 96 bytes/],
  ])('of %s %j: %s', (kind, set, problem) => {
    const found = resourceSetProblem(kind, set)
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(problem)
  })
})

const NEITHER = { read: false, write: false }
const NOTHING = {
  basins: null,
  streams: null,
  accessTokens: null,
  opGroups: { account: NEITHER, basin: NEITHER, stream: NEITHER },
  ops: [],
}

describe('a scope as given', () => {
  it.each<[AccessScopeInput, object]>([
    [{}, {}],
    [{ basins: null, streams: null, accessTokens: null, opGroups: null, ops: null }, {}],
    [{ basins: { prefix: '' } }, { basins: { prefix: '' } }],
    [{ streams: { exact: 's' } }, { streams: { exact: 's' } }],
    [{ accessTokens: { exact: '' } }, { accessTokens: { exact: '' } }],
    [{ ops: ['read', 'append', 'list-basins', 'read'] }, { ops: ['list-basins', 'append', 'read'] }],
    [
      { opGroups: { basin: { write: true } } },
      { opGroups: { account: NEITHER, basin: { read: false, write: true }, stream: NEITHER } },
    ],
    [
      { opGroups: { account: { read: true, write: false }, basin: null } },
      { opGroups: { account: { read: true, write: false }, basin: NEITHER, stream: NEITHER } },
    ],
  ])('%j permits nothing that is absent', (input, expected) => {
    expect(accessScope(input)).toEqual({ ...NOTHING, ...expected })
  })

  it('is a copy of it', () => {
    const basins = { prefix: 'mine' }
    const scope = accessScope({ basins })
    basins.prefix = ''
    expect(scope.basins).toEqual({ prefix: 'mine' })
  })

  it('has no operation that there is not', () => {
    const error = refusal(() => accessScope({ ops: ['read', 'reed' as never] }))
    expect([error?.code, error?.field]).toEqual(['invalid', 'scope.ops'])
  })

  it.each(['yes', 1, {}] as never[])('has a group only where it says `true`, not %j', (read) => {
    expect(accessScope({ opGroups: { stream: { read } } })).toEqual(NOTHING)
  })

  // The types admit both members; whoever reads one of them must not be deceived about the other.
  it.each<keyof AccessScopeInput & ResourceKind>(['basins', 'streams', 'accessTokens'])(
    'has sets of exactly one kind: %s',
    (kind) => {
      for (const set of [{ exact: 'a', prefix: '' }, { exact: '', prefix: '' }, {} as ResourceSet]) {
        const input: AccessTokenInput = { id: 'a', scope: { [kind]: set, ops: ['read'] } }
        const error = refusal(() => newAccessToken(input, 0))
        expect([error?.code, error?.field]).toEqual(['invalid', `scope.${kind}`])
      }
    },
  )
})

describe('a token to issue (wire-behaviour.md 9.7)', () => {
  const NOW = 1_000_000
  const at = (ms: number) => new Date(ms)
  const check = (parts: Partial<AccessTokenInput>) => {
    const input: AccessTokenInput = { id: 'a', scope: { ops: ['read'] }, ...parts }
    return refusal(() => newAccessToken(input, NOW))
  }

  it.each<[Partial<AccessTokenInput>]>([
    [{}],
    [{ expiresAt: null }],
    [{ expiresAt: at(NOW + 1) }],
    [{ autoPrefixStreams: false }],
    [{ autoPrefixStreams: true, scope: { streams: { prefix: 'a' } } }],
    [{ autoPrefixStreams: true, scope: { streams: { prefix: '' } } }],
  ])('%j is right', (parts) => {
    expect(check(parts)).toBeUndefined()
  })

  const PREFIXING = 'Auto prefixing is only allowed for streams with prefix matching'
  it.each<[Partial<AccessTokenInput>, field: string, message: RegExp]>([
    [{ id: '' }, 'id', /must not be empty/],
    [{ id: '..' }, 'id', /must not be/],
    [{ id: 'x'.repeat(97) }, 'id', /96 bytes/],
    [{ scope: { basins: { exact: 'Big' } } }, 'scope.basins', /lowercase/],
    [{ scope: { streams: { exact: '.' } } }, 'scope.streams', /must not be/],
    [{ scope: { accessTokens: { exact: '.' } } }, 'scope.accessTokens', /must not be/],
    [{ autoPrefixStreams: true }, 'auto_prefix_streams', new RegExp(PREFIXING)],
    [
      { autoPrefixStreams: true, scope: { streams: { exact: 'a' } } },
      'auto_prefix_streams',
      new RegExp(PREFIXING),
    ],
    [{ expiresAt: at(NOW) }, 'expires_at', /in the future/],
    [{ expiresAt: at(NOW - 1) }, 'expires_at', /in the future/],
    [{ expiresAt: at(Number.NaN) }, 'expires_at', /not a date/],
  ])('%j is refused for %s', (parts, field, message) => {
    const error = check(parts)
    expect([error?.code, error?.field]).toEqual(['invalid', field])
    expect(error?.message).toMatch(message)
  })
})
