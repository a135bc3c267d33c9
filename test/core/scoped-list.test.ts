import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scopedQuery, withinSet } from '../../src/core/permission.ts'
import type { ResourceSet } from '../../src/model/access.ts'
import { EMPTY_PAGE, type ListQuery, listLimit, type Page, pageOf } from '../../src/model/info.ts'
import { arbitraryName, arbitrarySet } from './access-scopes.ts'

/** Lists one page of names in order, as a storage does. */
function listed(all: readonly string[], { prefix = '', startAfter = '', limit }: ListQuery): Page<string> {
  const matches = all.filter((name) => name.startsWith(prefix) && name > startAfter)
  return pageOf(matches, listLimit(limit), (name) => name)
}

function scopedList(all: readonly string[], set: ResourceSet | null, query: ListQuery): Page<string> {
  const scoped = scopedQuery(set, query)
  return scoped === undefined ? EMPTY_PAGE : withinSet(set, listed(all, scoped), (name) => name)
}

/** The rule, without paging. */
function isInScope(set: ResourceSet | null, name: string): boolean {
  if (set === null) return false
  return 'prefix' in set ? name.startsWith(set.prefix) : name === set.exact && name !== ''
}

describe('a list restricted to a resource set', () => {
  it('contains exactly the members of the set, page by page', () => {
    const names = fc
      .uniqueArray(arbitraryName, { maxLength: 30 })
      .map((all) => all.filter((name) => name !== '').sort())
    const query = fc.record(
      { prefix: arbitraryName, startAfter: arbitraryName, limit: fc.integer({ min: 1, max: 4 }) },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(names, arbitrarySet, query, (all, set, query) => {
        const { prefix = '', startAfter = '', limit = 1000 } = query
        const expected = all.filter(
          (name) => isInScope(set, name) && name.startsWith(prefix) && name > startAfter,
        )
        const found: string[] = []
        for (let page: Page<string> | undefined; page?.hasMore ?? true; ) {
          page = scopedList(all, set, { ...query, startAfter: found.at(-1) ?? startAfter })
          found.push(...page.items)
          expect(page.items).toHaveLength(Math.min(limit, expected.length - found.length + page.items.length))
          expect(page.hasMore).toBe(found.length < expected.length)
        }
        expect(found).toEqual(expected)
      }),
    )
  })

  it.each<[ResourceSet | null, ListQuery]>([
    [null, {}],
    [{ exact: '' }, {}],
    [{ exact: 'ab' }, { prefix: 'abc' }],
    [{ prefix: 'ab' }, { prefix: 'b' }],
  ])('reads nothing if nothing can match: %j, %j', (set, query) => {
    expect(scopedQuery(set, query)).toBeUndefined()
  })

  it('interprets a set with both members as permissions do', () => {
    const set = { exact: 'b', prefix: 'ab' } as ResourceSet
    expect(scopedList(['a', 'ab', 'abc', 'abd', 'b'], set, {}).items).toEqual(['ab', 'abc', 'abd'])
  })
})
