import fc from 'fast-check'
import { type Grant, permitsOperation } from '../../src/core/permission.ts'
import { type AccessScope, OPERATIONS, type ResourceSet } from '../../src/model/access.ts'

const NEITHER = { read: false, write: false }
export const NO_GROUPS = { account: NEITHER, basin: NEITHER, stream: NEITHER }
export const ALL: ResourceSet = { prefix: '' }

/** A scope with every resource and no operation, except for the overrides. */
export function scopeWith(parts: Partial<AccessScope> = {}): AccessScope {
  return { basins: ALL, streams: ALL, accessTokens: ALL, opGroups: NO_GROUPS, ops: [], ...parts }
}

export function grantWith(parts: Partial<AccessScope> = {}, expiresAt: number | null = null): Grant {
  return { tokenId: 'issuer', scope: scopeWith(parts), expiresAt, streamPrefix: '' }
}

/** Few letters, so that names match prefixes. */
export const arbitraryName = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 3 })

const arbitrarySet: fc.Arbitrary<ResourceSet | null> = fc.oneof(
  fc.constant(null),
  arbitraryName.map((exact) => ({ exact })),
  arbitraryName.map((prefix) => ({ prefix })),
)

const arbitraryGroup = fc.record({ read: fc.boolean(), write: fc.boolean() })

export const arbitraryScope: fc.Arbitrary<AccessScope> = fc.record({
  basins: arbitrarySet,
  streams: arbitrarySet,
  accessTokens: arbitrarySet,
  opGroups: fc.record({ account: arbitraryGroup, basin: arbitraryGroup, stream: arbitraryGroup }),
  ops: fc.subarray([...OPERATIONS], { maxLength: 4 }),
})

/** Scopes that mostly stay within the given one. */
export function arbitraryScopeWithin(outer: AccessScope): fc.Arbitrary<AccessScope> {
  const mostly = <Value>(within: fc.Arbitrary<Value>, any: fc.Arbitrary<Value>) =>
    fc.oneof({ weight: 9, arbitrary: within }, { weight: 1, arbitrary: any })
  const group = ({ read, write }: { readonly read: boolean; readonly write: boolean }) =>
    mostly(
      arbitraryGroup.map((asked) => ({ read: asked.read && read, write: asked.write && write })),
      arbitraryGroup,
    )
  const { account, basin, stream } = outer.opGroups
  return fc.record({
    basins: mostly(setWithin(outer.basins), arbitrarySet),
    streams: mostly(setWithin(outer.streams), arbitrarySet),
    accessTokens: mostly(setWithin(outer.accessTokens), arbitrarySet),
    opGroups: fc.record({ account: group(account), basin: group(basin), stream: group(stream) }),
    ops: mostly(
      fc.subarray(OPERATIONS.filter((operation) => permitsOperation(outer, operation))),
      fc.subarray([...OPERATIONS], { maxLength: 1 }),
    ),
  })
}

function setWithin(outer: ResourceSet | null): fc.Arbitrary<ResourceSet | null> {
  if (outer === null || 'exact' in outer) return fc.constantFrom(outer, null, { exact: '' })
  const { prefix } = outer
  return arbitraryName.chain((more) =>
    fc.constantFrom(outer, null, { exact: prefix + more }, { prefix: prefix + more }),
  )
}
