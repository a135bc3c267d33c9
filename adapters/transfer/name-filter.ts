/** Which basins or streams a transfer is about: one by its name, or all whose names begin so. */
export type NameFilter = { readonly exact: string } | { readonly prefix: string }

export interface TransferFilter {
  readonly basins: NameFilter
  readonly streams: NameFilter
}

export const EVERYTHING: TransferFilter = { basins: { prefix: '' }, streams: { prefix: '' } }

/** `NAME`, `PREFIX*`, or `*` for all. */
export function nameFilter(text: string): NameFilter {
  return text.endsWith('*') ? { prefix: text.slice(0, -1) } : { exact: text }
}

export function nameFilterText(filter: NameFilter): string {
  return 'prefix' in filter ? `${filter.prefix}*` : filter.exact
}

export function matchesName(filter: NameFilter, name: string): boolean {
  return 'prefix' in filter ? name.startsWith(filter.prefix) : name === filter.exact
}

/** What to ask a list for. No other name with the prefix comes before the name that is the prefix. */
export function listRange(filter: NameFilter): { readonly prefix: string; readonly limit: number } {
  return 'prefix' in filter ? { prefix: filter.prefix, limit: 1000 } : { prefix: filter.exact, limit: 1 }
}
