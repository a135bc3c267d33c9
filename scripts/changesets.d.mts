export interface Changeset {
  readonly kind: string
  readonly sentence: string
}

export function parseChangeset(name: string, text: string): Changeset
export function nextVersion(version: string, kinds: readonly string[]): string
export function withVersion(changelog: string, version: string, changesets: readonly Changeset[]): string
