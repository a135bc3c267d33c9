import type { ResourceSet } from '../model/access.ts'
import type { ListQuery, Page } from '../model/info.ts'
import { LIST_LIMIT_MAX } from '../model/limits.ts'
import { covers } from './permission.ts'

/** The size of a page: 1 to 1,000, and 1,000 for anything else (docs/protocol.md "Lists"). */
export function listLimit(limit: number | undefined): number {
  return limit === undefined || !(limit >= 1 && limit <= LIST_LIMIT_MAX) ? LIST_LIMIT_MAX : Math.floor(limit)
}

/** A page of up to `limit + 1` matches. The last one only shows that the list continues. */
export function pageOf<Match, Item>(
  matches: readonly Match[],
  limit: number,
  item: (match: Match) => Item,
): Page<Item> {
  return { items: matches.slice(0, limit).map(item), hasMore: matches.length > limit }
}

/**
 * Restricts a list query to a resource set; undefined if nothing can match (docs/protocol.md "Permissions").
 */
export function scopedQuery(set: ResourceSet | null, query: ListQuery): ListQuery | undefined {
  if (set === null) return undefined
  const { prefix = '' } = query
  if ('prefix' in set) {
    if (prefix.startsWith(set.prefix)) return query
    return set.prefix.startsWith(prefix) ? { ...query, prefix: set.prefix } : undefined
  }
  return set.exact !== '' && set.exact.startsWith(prefix) ? { ...query, prefix: set.exact } : undefined
}

/** Removes names from a page that match the query of {@link scopedQuery} but not the resource set. */
export function withinSet<Item>(
  set: ResourceSet | null,
  page: Page<Item>,
  nameOf: (item: Item) => string,
): Page<Item> {
  if (set === null || 'prefix' in set) return page
  return { items: page.items.filter((item) => covers(set, nameOf(item))), hasMore: false }
}
