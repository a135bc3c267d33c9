import { compareUtf8 } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import { LIST_QUERY, type ListQuery, type Page } from '../model/info.ts'
import { assertMembers, type MembersOf } from '../model/validation.ts'

/** Selects the items of a `listAll` method. */
export type ListAllQuery = Pick<ListQuery, 'prefix' | 'startAfter'>

const { prefix, startAfter } = LIST_QUERY
const LIST_ALL_QUERY: MembersOf<ListAllQuery> = { prefix, startAfter }

/** Iterates over all pages of a list, reading one page at a time. */
export async function* listAll<Item>(
  query: ListAllQuery,
  list: (query: ListQuery) => Promise<Page<Item>>,
  nameOf: (item: Item) => string,
): AsyncGenerator<Item, void, undefined> {
  assertMembers(query, LIST_ALL_QUERY, 'query')
  let { startAfter } = query
  for (;;) {
    const { items, hasMore } = await list({ ...query, startAfter })
    yield* items
    if (!hasMore) return
    const last = items.length === 0 ? '' : nameOf(items.at(-1)!)
    // Otherwise the next page could be the same one, forever.
    if (compareUtf8(last, startAfter ?? '') <= 0) {
      throw new HeadwaterError('other', 'the list is out of order', { mayHaveEffects: false })
    }
    startAfter = last
  }
}

const MISSING: readonly string[] = ['stream_not_found', 'basin_not_found', 'basin_deletion_pending']

/** Resolves to whether the call finds what it asks about. A basin that is being deleted counts as missing. */
export async function existsBy(call: Promise<unknown>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (HeadwaterError.is(error) && MISSING.includes(error.code)) return false
    throw error
  }
}
