import { describe, expect, it } from 'vitest'
import {
  type AccessScopeInput,
  type AccessTokenInput,
  accessScope,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
  OPERATIONS,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../../src/model/access.ts'
import { titled } from '../support/titled.ts'
import { rejection } from './rejection.ts'

describe('operations', () => {
  it('are listed in the order of the wire protocol', () => {
    expect(OPERATIONS.join(' ')).toBe(
      'list-basins create-basin delete-basin reconfigure-basin get-basin-config issue-access-token ' +
        'revoke-access-token list-access-tokens list-streams create-stream delete-stream get-stream-config ' +
        'reconfigure-stream check-tail append read trim fence account-metrics basin-metrics stream-metrics ' +
        'list-locations get-default-location set-default-location',
    )
  })
})

describe('an access token id', () => {
  it.each<[string, string | undefined]>([
    ['a', undefined],
    ['team/a', undefined],
    ['...', undefined],
    ['x'.repeat(96), undefined],
    ['é'.repeat(48), undefined],
    ['', 'access token id must not be empty'],
    ['.', 'access token id must not be "." or ".."'],
    ['..', 'access token id must not be "." or ".."'],
    ['x'.repeat(97), 'access token id must not exceed 96 bytes in length'],
    ['é'.repeat(49), 'access token id must not exceed 96 bytes in length'],
    ['\ud800', 'access token id must be valid Unicode'],
    ['team\0', 'access token id must not contain U+0000'],
  ])('%j: %s', (id, problem) => {
    expect(accessTokenIdProblem(id)).toBe(problem)
  })

  it.each<[string, string | undefined]>([
    ['', undefined],
    ['.', undefined],
    ['a\0', undefined],
    ['x'.repeat(96), undefined],
    ['x'.repeat(97), 'access token start-after must not exceed 96 bytes in length'],
    ['\udc00', 'access token start-after must be valid Unicode'],
  ])('in a list query %j: %s', (text, problem) => {
    expect(accessTokenPrefixProblem(text, 'start-after')).toBe(problem)
  })
})

describe('a resource set', () => {
  it.each(
    titled<[ResourceKind, ResourceSet, RegExp | undefined]>([
      ['basins', { exact: '' }, undefined],
      ['basins', { prefix: '' }, undefined],
      ['basins', { exact: 'b' }, undefined],
      ['streams', { exact: 'a\0' }, /^stream name must not contain U\+0000/],
      ['streams', { prefix: 'a\0' }, /^stream prefix must not contain U\+0000/],
      ['accessTokens', { prefix: 'a\0' }, /^access token prefix must not contain U\+0000/],
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
    ]),
  )('of %s', (_, kind, set, problem) => {
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

describe('the input of a scope', () => {
  it.each<[AccessScopeInput, object]>([
    [{}, {}],
    [{ basins: null, streams: null, accessTokens: null, opGroups: null, ops: null }, {}],
    [{ basins: { prefix: '' } }, { basins: { prefix: '' } }],
    [{ streams: { exact: 's' } }, { streams: { exact: 's' } }],
    [{ accessTokens: { exact: '' } }, { accessTokens: null }],
    [{ ops: ['read', 'append', 'list-basins', 'read'] }, { ops: ['list-basins', 'append', 'read'] }],
    [
      { opGroups: { basin: { write: true } } },
      { opGroups: { account: NEITHER, basin: { read: false, write: true }, stream: NEITHER } },
    ],
    [
      { opGroups: { account: { read: true, write: false }, basin: null } },
      { opGroups: { account: { read: true, write: false }, basin: NEITHER, stream: NEITHER } },
    ],
  ])('%j permits nothing by omission', (input, expected) => {
    expect(accessScope(input)).toEqual({ ...NOTHING, ...expected })
  })

  it('is copied', () => {
    const basins = { prefix: 'mine' }
    const scope = accessScope({ basins })
    basins.prefix = ''
    expect(scope.basins).toEqual({ prefix: 'mine' })
  })

  it('contains no unknown operation', () => {
    const error = rejection(() => accessScope({ ops: ['read', 'reed' as never] }))
    expect([error?.code, error?.field]).toEqual(['invalid', 'scope.ops[1]'])
  })

  it.each(['yes', 1, {}] as never[])('has a group only for a boolean, not for %j', (read) => {
    const error = rejection(() => accessScope({ opGroups: { stream: { read } } }))
    expect([error?.code, error?.field]).toEqual(['invalid', 'scope.opGroups.stream.read'])
  })

  // The types permit both members, but code that reads one would miss the other.
  it.each<keyof AccessScopeInput & ResourceKind>(['basins', 'streams', 'accessTokens'])(
    'has sets with exactly one member: %s',
    (kind) => {
      for (const set of [{ exact: 'a', prefix: '' }, { exact: '', prefix: '' }, {} as ResourceSet]) {
        const input: AccessTokenInput = { id: 'a', scope: { [kind]: set, ops: ['read'] } }
        const error = rejection(() => newAccessToken(input))
        expect([error?.code, error?.field]).toEqual(['invalid', `scope.${kind}`])
      }
    },
  )
})

describe('the input of a token', () => {
  const NOW = 1_000_000
  const at = (ms: number) => new Date(ms)
  const check = (parts: Partial<AccessTokenInput>) => {
    const input: AccessTokenInput = { id: 'a', scope: { ops: ['read'] }, ...parts }
    return rejection(() => newAccessToken(input))
  }

  it.each<[Partial<AccessTokenInput>]>([
    [{}],
    [{ expiresAt: null }],
    [{ expiresAt: at(NOW + 1) }],
    [{ autoPrefixStreams: false }],
    [{ autoPrefixStreams: true, scope: { streams: { prefix: 'a' } } }],
    [{ autoPrefixStreams: true, scope: { streams: { prefix: '' } } }],
  ])('accepts %j', (parts) => {
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
    [{ autoPrefixStreams: true }, 'autoPrefixStreams', new RegExp(PREFIXING)],
    [
      { autoPrefixStreams: true, scope: { streams: { exact: 'a' } } },
      'autoPrefixStreams',
      new RegExp(PREFIXING),
    ],
    [{ expiresAt: at(Number.NaN) }, 'expiresAt', /must be a Date or milliseconds/],
  ])('rejects %j because of %s', (parts, field, message) => {
    const error = check(parts)
    expect([error?.code, error?.field]).toEqual(['invalid', field])
    expect(error?.message).toMatch(message)
  })
})
