import { describe, expect, it } from 'vitest'
import { isEmptyScope, OWNER, permits, permitsOperation, type Resource } from '../../src/core/permission.ts'
import {
  type AccessScope,
  OPERATIONS,
  type Operation,
  type OperationLevel,
  type ResourceSet,
} from '../../src/model/access.ts'
import { grantWith, NO_GROUPS, scopeWith } from './access-scopes.ts'

/** The table of docs/protocol.md "Permissions". */
const GROUPS = [
  [
    'account',
    'read',
    'list-basins get-basin-config list-access-tokens account-metrics list-locations get-default-location',
  ],
  [
    'account',
    'write',
    'create-basin delete-basin reconfigure-basin issue-access-token revoke-access-token set-default-location',
  ],
  ['basin', 'read', 'list-streams get-stream-config basin-metrics'],
  ['basin', 'write', 'create-stream delete-stream reconfigure-stream'],
  ['stream', 'read', 'check-tail read stream-metrics'],
  ['stream', 'write', 'append trim fence'],
] as const

/** The scope whose only permission is this group. */
function groupScope(level: OperationLevel, access: 'read' | 'write'): AccessScope {
  return scopeWith({ opGroups: { ...NO_GROUPS, [level]: { ...NO_GROUPS[level], [access]: true } } })
}

const permitted = (scope: AccessScope) => OPERATIONS.filter((operation) => permitsOperation(scope, operation))
const inOrder = (operations: readonly string[]) =>
  OPERATIONS.filter((operation) => operations.includes(operation))

describe('operations', () => {
  it('are 24, each in one group', () => {
    const listed = GROUPS.flatMap(([, , operations]) => operations.split(' '))
    expect(listed).toHaveLength(24)
    expect([...listed].sort()).toEqual([...OPERATIONS].sort())
  })

  it('are none without groups and single ones', () => {
    expect(permitted(scopeWith())).toEqual([])
  })

  it.each(GROUPS)('of the group %s %s', (level, access, operations) => {
    expect(permitted(groupScope(level, access))).toEqual(inOrder(operations.split(' ')))
  })

  it.each(OPERATIONS)('single: %s is permitted, and no other', (operation) => {
    expect(permitted(scopeWith({ ops: [operation] }))).toEqual([operation])
  })

  it('are the union of groups and single operations', () => {
    const both = { read: true, write: true }
    const { opGroups } = groupScope('account', 'read')
    const scope = scopeWith({ opGroups: { ...opGroups, stream: both }, ops: ['read', 'create-stream'] })
    const [account, , , , read, write] = GROUPS.map(([, , operations]) => operations.split(' '))
    expect(permitted(scope)).toEqual(inOrder([...account!, ...read!, ...write!, 'create-stream']))
  })
})

describe('a scope', () => {
  it.each(GROUPS)('permits something with a group: %s %s', (level, access) => {
    expect(isEmptyScope(groupScope(level, access))).toBe(false)
  })

  it('permits something with a single operation', () => {
    expect(isEmptyScope(scopeWith({ ops: ['read'] }))).toBe(false)
  })

  it('permits nothing without either, for any resources', () => {
    expect(isEmptyScope(scopeWith())).toBe(true)
  })
})

const KINDS = [
  ['basins', 'basin'],
  ['streams', 'stream'],
  ['accessTokens', 'tokenId'],
] as const

describe.each(KINDS)('resources: %s', (kind, member) => {
  it.each<[ResourceSet | null, string, boolean]>([
    [null, 'abc', false],
    [null, '', false],
    [{ exact: 'abc' }, 'abc', true],
    [{ exact: 'abc' }, 'abcd', false],
    [{ exact: 'abc' }, 'ab', false],
    [{ exact: 'abc' }, 'ABC', false],
    [{ exact: 'abc' }, '', false],
    [{ exact: '' }, 'abc', false],
    [{ exact: '' }, '', false],
    [{ prefix: 'ab' }, 'abc', true],
    [{ prefix: 'ab' }, 'ab', true],
    [{ prefix: 'ab' }, 'a', false],
    [{ prefix: 'ab' }, 'xab', false],
    [{ prefix: 'ab' }, 'Abc', false],
    [{ prefix: 'ab' }, '', false],
    [{ prefix: '' }, 'abc', true],
    [{ prefix: '' }, '\0', true],
  ])('%j and %j: %s', (set, name, expected) => {
    const grant = grantWith({ [kind]: set, ops: ['append'] })
    expect(permits(grant, 'append', { [member]: name })).toBe(expected)
  })

  it('apply only to operations on that resource', () => {
    const grant = grantWith({ [kind]: null, ops: ['append'] })
    expect(permits(grant, 'append', {})).toBe(true)
    const others = KINDS.filter(([other]) => other !== kind).map(([, other]) => [other, 'name'])
    expect(permits(grant, 'append', Object.fromEntries(others))).toBe(true)
    expect(permits(grant, 'append', { ...Object.fromEntries(others), [member]: 'name' })).toBe(false)
  })
})

describe('a permission', () => {
  const resource: Resource = { basin: 'mine', stream: 'logs/a', tokenId: 'team/a' }
  const sets = {
    basins: { exact: 'mine' },
    streams: { prefix: 'logs/' },
    accessTokens: { prefix: 'team/' },
  } as const

  it('requires the operation and each of the resources', () => {
    const grant = grantWith({ ...sets, ops: ['read'] })
    expect(permits(grant, 'read', resource)).toBe(true)
    expect(permits(grant, 'append', resource)).toBe(false)
    expect(permits(grant, 'read', { ...resource, basin: 'other' })).toBe(false)
    expect(permits(grant, 'read', { ...resource, stream: 'audit/a' })).toBe(false)
    expect(permits(grant, 'read', { ...resource, tokenId: 'boss/a' })).toBe(false)
  })

  it.each(OPERATIONS)('of the owner covers everything: %s', (operation: Operation) => {
    expect(permits(OWNER, operation, { basin: 'any', stream: '\0', tokenId: '.' })).toBe(true)
    expect(permits(OWNER, operation, {})).toBe(true)
    expect([OWNER.expiresAt, OWNER.tokenId, OWNER.streamPrefix]).toEqual([null, null, ''])
  })
})
