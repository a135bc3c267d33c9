import type { ResourceSet } from '../model/access.ts'
import type { ListQuery, Page } from '../model/info.ts'
import { covers } from './permission.ts'

/** The part of a list that lies within a resource set, as another query, or undefined when there is none (rulings.md "Tokens"). */
export function scopedQuery(set: ResourceSet | null, query: ListQuery): ListQuery | undefined {
  if (set === null) return undefined
  const { prefix = '' } = query
  if ('prefix' in set) {
    if (prefix.startsWith(set.prefix)) return query
    return set.prefix.startsWith(prefix) ? { ...query, prefix: set.prefix } : undefined
  }
  return set.exact !== '' && set.exact.startsWith(prefix) ? { ...query, prefix: set.exact } : undefined
}

/** What a scoped query found, without names that only begin like the one of the set. */
export function withinSet<Item>(
  set: ResourceSet | null,
  page: Page<Item>,
  nameOf: (item: Item) => string,
): Page<Item> {
  if (set === null || 'prefix' in set) return page
  return { items: page.items.filter((item) => covers(set, nameOf(item))), hasMore: false }
}

export const EMPTY_PAGE: Page<never> = { items: [], hasMore: false }
