/** Selects basins or streams by name or by prefix. */
export type NameFilter = { readonly exact: string } | { readonly prefix: string }

export interface TransferFilter {
  readonly basins: NameFilter
  readonly streams: NameFilter
}

export const EVERYTHING: TransferFilter = { basins: { prefix: '' }, streams: { prefix: '' } }

/** Parses `NAME`, `PREFIX*`, or `*` for all. */
export function parseNameFilter(text: string): NameFilter {
  return text.endsWith('*') ? { prefix: text.slice(0, -1) } : { exact: text }
}

export function nameFilterText(filter: NameFilter): string {
  return 'prefix' in filter ? `${filter.prefix}*` : filter.exact
}

export function matchesName(filter: NameFilter, name: string): boolean {
  return 'prefix' in filter ? name.startsWith(filter.prefix) : name === filter.exact
}

/**
 * Returns the range of a list that covers the filter. An exact name is the first of all names with that
 * prefix.
 */
export function listRange(filter: NameFilter): { readonly prefix: string; readonly limit: number } {
  return 'prefix' in filter ? { prefix: filter.prefix, limit: 1000 } : { prefix: filter.exact, limit: 1 }
}
