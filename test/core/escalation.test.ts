import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exceeds, type Grant, permits } from '../../src/core/permission.ts'
import {
  type AccessScope,
  OPERATION_LEVELS,
  OPERATIONS,
  type Operation,
  type OperationLevel,
  type ResourceSet,
} from '../../src/model/access.ts'
import {
  ALL,
  arbitraryName,
  arbitraryScope,
  arbitraryScopeWithin,
  grantWith,
  scopeWith,
} from './access-scopes.ts'

const requestedWith = (parts: Partial<AccessScope>, expiresAt: number | null = null) => ({
  scope: scopeWith(parts),
  expiresAt,
})
const grantOf = (scope: AccessScope, expiresAt: number | null = null): Grant => ({
  ...grantWith({}, expiresAt),
  scope,
})

describe('rejects operations that the issuer does not have', () => {
  it.each(OPERATIONS)('%s', (operation) => {
    const others = OPERATIONS.filter((other) => other !== operation)
    expect(exceeds(grantWith({ ops: [operation] }), requestedWith({ ops: [operation] }))).toBeUndefined()
    expect(exceeds(grantWith({ ops: others }), requestedWith({ ops: [operation] }))).toBe('operations')
    expect(exceeds(grantWith({ ops: others }), requestedWith({ ops: others }))).toBeUndefined()
  })

  it('a group exceeds its current operations, because it grants future ones', () => {
    const issuer = grantWith({ ops: OPERATIONS })
    for (const level of OPERATION_LEVELS) {
      for (const access of ['read', 'write'] as const) {
        const opGroups = { ...scopeWith({}).opGroups, [level]: { read: false, write: false, [access]: true } }
        expect(exceeds(issuer, requestedWith({ opGroups }))).toBe('operations')
        expect(exceeds(grantWith({ opGroups }), requestedWith({ opGroups }))).toBeUndefined()
      }
    }
  })

  const groups = OPERATION_LEVELS.flatMap((level) => [[level, 'read'] as const, [level, 'write'] as const])
  const having = (...held: (readonly [OperationLevel, 'read' | 'write'])[]) => {
    const has = (level: OperationLevel, access: 'read' | 'write') =>
      held.some((group) => group[0] === level && group[1] === access)
    const group = (level: OperationLevel) => ({ read: has(level, 'read'), write: has(level, 'write') })
    return { opGroups: { account: group('account'), basin: group('basin'), stream: group('stream') } }
  }

  it.each(groups)('group %s %s', (...group) => {
    const others = groups.filter(([level, access]) => level !== group[0] || access !== group[1])
    expect(exceeds(grantWith(having(group)), requestedWith(having(group)))).toBeUndefined()
    expect(exceeds(grantWith(having(...others)), requestedWith(having(group)))).toBe('operations')
    expect(exceeds(grantWith(having(...groups)), requestedWith(having(...groups)))).toBeUndefined()
  })

  it.each<[Partial<AccessScope>, readonly Operation[], 'operations' | undefined]>([
    [having(['stream', 'write']), ['append', 'trim', 'fence'], undefined],
    [having(['stream', 'write']), ['read'], 'operations'],
    [{ ...having(['stream', 'write']), ops: ['read'] }, ['append', 'read'], undefined],
    [{ ops: ['append', 'trim'] }, ['append', 'trim', 'fence'], 'operations'],
  ])('%j requests %j: %s', (issuer, ops, expected) => {
    expect(exceeds(grantWith(issuer), requestedWith({ ops }))).toBe(expected)
  })

  it('a group exceeds a subset of its operations', () => {
    expect(exceeds(grantWith({ ops: ['append'] }), requestedWith(having(['stream', 'write'])))).toBe(
      'operations',
    )
  })
})

describe.each([
  ['basins', 'basins'],
  ['streams', 'streams'],
  ['accessTokens', 'access tokens'],
] as const)('rejects resources that the issuer does not have: %s', (kind, more) => {
  it.each<[outer: ResourceSet | null, inner: ResourceSet | null, typeof more | undefined]>([
    [null, null, undefined],
    [null, { exact: '' }, undefined],
    [null, { exact: 'a' }, more],
    [null, { prefix: 'a' }, more],
    [null, { prefix: '' }, more],
    [{ exact: '' }, null, undefined],
    [{ exact: '' }, { exact: '' }, undefined],
    [{ exact: '' }, { exact: 'a' }, more],
    [{ exact: '' }, { prefix: '' }, more],
    [{ exact: 'ab' }, null, undefined],
    [{ exact: 'ab' }, { exact: '' }, undefined],
    [{ exact: 'ab' }, { exact: 'ab' }, undefined],
    [{ exact: 'ab' }, { exact: 'abc' }, more],
    [{ exact: 'ab' }, { exact: 'a' }, more],
    [{ exact: 'ab' }, { prefix: 'ab' }, more],
    [{ exact: 'ab' }, { prefix: 'abc' }, more],
    [{ exact: 'ab' }, { prefix: '' }, more],
    [{ prefix: 'ab' }, null, undefined],
    [{ prefix: 'ab' }, { exact: '' }, undefined],
    [{ prefix: 'ab' }, { exact: 'ab' }, undefined],
    [{ prefix: 'ab' }, { exact: 'abc' }, undefined],
    [{ prefix: 'ab' }, { exact: 'a' }, more],
    [{ prefix: 'ab' }, { exact: 'ba' }, more],
    [{ prefix: 'ab' }, { prefix: 'ab' }, undefined],
    [{ prefix: 'ab' }, { prefix: 'abc' }, undefined],
    [{ prefix: 'ab' }, { prefix: 'a' }, more],
    [{ prefix: 'ab' }, { prefix: 'b' }, more],
    [{ prefix: 'ab' }, { prefix: '' }, more],
    [{ prefix: '' }, null, undefined],
    [{ prefix: '' }, { exact: 'a' }, undefined],
    [{ prefix: '' }, { prefix: 'a' }, undefined],
    [{ prefix: '' }, { prefix: '' }, undefined],
    // A set with both members covers everything with the prefix.
    [{ exact: 'a' }, { exact: 'a', prefix: '' } as ResourceSet, more],
    [{ exact: 'a' }, { exact: '', prefix: '' } as ResourceSet, more],
    [{ prefix: 'a' }, { exact: 'ab', prefix: 'b' } as ResourceSet, more],
  ])('%j requests %j: %s', (outer, inner, expected) => {
    const ops = ['read'] as const
    expect(exceeds(grantWith({ [kind]: outer, ops }), requestedWith({ [kind]: inner, ops }))).toBe(expected)
  })
})

describe('an expiry', () => {
  it.each<[issuer: number | null, requested: number | null, 'expiry' | undefined]>([
    [null, null, undefined],
    [null, 1, undefined],
    [1000, null, 'expiry'],
    [1000, 1001, 'expiry'],
    [1000, 1000, undefined],
    [1000, 999, undefined],
  ])('%s requests %s: %s', (issuer, requested, expected) => {
    expect(exceeds(grantWith({}, issuer), requestedWith({}, requested))).toBe(expected)
  })
})

describe('an issued token', () => {
  const resource = fc.record(
    { basin: arbitraryName, stream: arbitraryName, tokenId: arbitraryName },
    { requiredKeys: [] },
  )
  const pair = arbitraryScope.chain((outer) => fc.tuple(fc.constant(outer), arbitraryScopeWithin(outer)))
  const triple = pair.chain(([first, second]) =>
    fc.tuple(fc.constant(first), fc.constant(second), arbitraryScopeWithin(second)),
  )

  it('permits nothing beyond its issuer', () => {
    fc.assert(
      fc.property(pair, resource, ([outer, inner], resource) => {
        if (exceeds(grantOf(outer), { scope: inner, expiresAt: null }) !== undefined) return
        for (const operation of OPERATIONS) {
          if (!permits(grantOf(inner), operation, resource)) continue
          expect(permits(grantOf(outer), operation, resource)).toBe(true)
        }
      }),
    )
  })

  it('may permit everything that its issuer may do', () => {
    const expiry = fc.option(fc.nat())
    fc.assert(
      fc.property(arbitraryScope, expiry, (scope, expiresAt) => {
        expect(exceeds(grantOf(scope, expiresAt), { scope, expiresAt })).toBeUndefined()
      }),
    )
  })

  it('can issue no more than its own permissions', () => {
    const expiries = fc.tuple(fc.option(fc.nat(3)), fc.option(fc.nat(3)), fc.option(fc.nat(3)))
    fc.assert(
      fc.property(triple, expiries, ([a, b, c], [aExpiry, bExpiry, cExpiry]) => {
        if (exceeds(grantOf(a, aExpiry), { scope: b, expiresAt: bExpiry }) !== undefined) return
        if (exceeds(grantOf(b, bExpiry), { scope: c, expiresAt: cExpiry }) !== undefined) return
        expect(exceeds(grantOf(a, aExpiry), { scope: c, expiresAt: cExpiry })).toBeUndefined()
      }),
    )
  })

  it('is rejected for an excess, not for fewer permissions', () => {
    const issuer = grantWith({ basins: { prefix: 'a' }, ops: ['read'] }, 1000)
    expect(exceeds(issuer, requestedWith({ basins: ALL, ops: ['append'] }, null))).toBe('operations')
    expect(
      exceeds(issuer, requestedWith({ basins: { prefix: 'a' }, streams: null, ops: [] }, 1)),
    ).toBeUndefined()
  })
})
