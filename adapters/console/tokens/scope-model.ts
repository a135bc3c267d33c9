import type { Operation } from '../../../src/model/operations.ts'
import type { GroupAccess, GroupLevel, ResourceSet, TokenScope } from '../api/types.ts'

/** The resources of one kind, as the form has them. */
export interface SetFields {
  readonly kind: 'none' | 'all' | 'prefix' | 'exact'
  readonly text: string
}

/** The scope of a token, as the form has it. */
export interface ScopeFields {
  readonly basins: SetFields
  readonly streams: SetFields
  readonly tokens: SetFields
  /** Such as `stream:read`. */
  readonly groups: readonly `${GroupLevel}:${GroupAccess}`[]
  readonly ops: readonly Operation[]
}

const NONE: SetFields = { kind: 'none', text: '' }
const ALL: SetFields = { kind: 'all', text: '' }

export const EMPTY_SCOPE: ScopeFields = { basins: ALL, streams: ALL, tokens: NONE, groups: [], ops: [] }

/** Scopes to start from. */
export const PRESETS: readonly (readonly [title: string, scope: ScopeFields])[] = [
  ['Read streams', { ...EMPTY_SCOPE, groups: ['stream:read'], ops: ['list-basins', 'list-streams'] }],
  ['Append only', { ...EMPTY_SCOPE, ops: ['append'] }],
  [
    'Read and append',
    { ...EMPTY_SCOPE, groups: ['stream:read', 'stream:write'], ops: ['list-basins', 'list-streams'] },
  ],
  [
    'Everything',
    {
      ...EMPTY_SCOPE,
      tokens: ALL,
      groups: ['account:read', 'account:write', 'basin:read', 'basin:write', 'stream:read', 'stream:write'],
    },
  ],
]

/** The scope of fields, as the wire protocol has it. */
export function scopeOf({ basins, streams, tokens, groups, ops }: ScopeFields): TokenScope {
  const level = (name: GroupLevel) => ({
    read: groups.includes(`${name}:read`),
    write: groups.includes(`${name}:write`),
  })
  return {
    basins: setOf(basins),
    streams: setOf(streams),
    access_tokens: setOf(tokens),
    op_groups: { account: level('account'), basin: level('basin'), stream: level('stream') },
    ops,
  }
}

function setOf({ kind, text }: SetFields): ResourceSet | null {
  if (kind === 'none') return null
  if (kind === 'all') return { prefix: '' }
  return kind === 'prefix' ? { prefix: text } : { exact: text }
}
