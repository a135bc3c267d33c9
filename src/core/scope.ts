import type { ResourceSet } from '../model/access.ts'
import { utf8Length } from '../model/bytes.ts'
import { invalid } from '../model/errors.ts'
import type { ListQuery, Page } from '../model/info.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'
import type { NameRole } from '../model/names.ts'
import { covers } from './permission.ts'

/**
 * A token holder whose stream names are prefixed; `''` is no prefix (docs/protocol.md "Automatic prefixes").
 */
interface Prefixed {
  readonly streamPrefix: string
}

/** The name of a stream in the storage. Throws `invalid` if it is too long together with the prefix. */
export function prefixedName({ streamPrefix }: Prefixed, name: string): string {
  return checkedLength(streamPrefix + name, streamPrefix, 'name', 'stream')
}

/** The name of a stream as its holder knows it. */
export function shownName({ streamPrefix }: Prefixed, prefixed: string): string {
  return prefixed.slice(streamPrefix.length)
}

/** The list query with the prefix of the holder. Throws `invalid` as {@link prefixedName} does. */
export function prefixedQuery({ streamPrefix }: Prefixed, query: ListQuery): ListQuery {
  if (streamPrefix === '') return query
  const { prefix = '', startAfter = '' } = query
  return {
    ...query,
    prefix: checkedLength(streamPrefix + prefix, streamPrefix, 'prefix', 'prefix'),
    // Also for the first page: a stream named as the prefix has no name for the caller.
    startAfter: checkedLength(streamPrefix + startAfter, streamPrefix, 'start-after', 'startAfter'),
  }
}

function checkedLength(text: string, streamPrefix: string, role: NameRole, field: string): string {
  if (streamPrefix === '' || utf8Length(text) <= STREAM_NAME_BYTES_MAX) return text
  throw invalid(
    `stream ${role} must not exceed ${STREAM_NAME_BYTES_MAX} bytes in length together with the prefix of the access token`,
    field,
  )
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
