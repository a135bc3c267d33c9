import type { Page } from '../model/info.ts'
import { LIST_LIMIT_MAX } from '../model/limits.ts'

/** How many items a page holds: 1 to 1,000, anything else is 1,000 (wire-behaviour.md 1.8). */
export function listLimit(limit: number | undefined): number {
  return limit === undefined || !(limit >= 1 && limit <= LIST_LIMIT_MAX) ? LIST_LIMIT_MAX : Math.floor(limit)
}

/** A page out of up to `limit + 1` matches: the one too many only tells that there are more. */
export function pageOf<Match, Item>(
  matches: readonly Match[],
  limit: number,
  item: (match: Match) => Item,
): Page<Item> {
  return { items: matches.slice(0, limit).map(item), hasMore: matches.length > limit }
}
