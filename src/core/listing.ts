import type { Page } from '../model/info.ts'
import { LIST_LIMIT_MAX } from '../model/limits.ts'

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
