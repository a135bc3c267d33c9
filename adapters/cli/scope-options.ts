import type { OperationLevel, ResourceSet } from '../../src/index.ts'
import { type ResourceKind, resourceSetProblem } from '../../src/model/access.ts'
import { OPERATION_LEVELS } from '../../src/model/operations.ts'
import { CliError } from './failure.ts'

const SET_OPTIONS = { basins: '--basins', streams: '--streams', accessTokens: '--access-tokens' } as const

/** `name` is that one, `prefix*` all that begin so, `*` all. */
export function resourceSet(kind: ResourceKind, text: string | undefined): ResourceSet | null {
  if (text === undefined) return null
  const option = SET_OPTIONS[kind]
  if (text === '')
    throw new CliError(2, `${option} must not be empty: leave it out to match none, * matches all`)
  const set = text.endsWith('*') ? { prefix: text.slice(0, -1) } : { exact: text }
  const problem = resourceSetProblem(kind, set)
  if (problem !== undefined) throw new CliError(2, `${option}: ${problem}`)
  return set
}

/** A resource set as {@link resourceSet} takes it; `-` for none, and JSON for what that cannot say. */
export function resourceSetText(set: ResourceSet | null): string {
  if (set === null || ('exact' in set && set.exact === '')) return '-'
  if ('prefix' in set) return `${set.prefix}*`
  return set.exact === '-' || set.exact.endsWith('*') ? JSON.stringify(set) : set.exact
}

export type GroupsForm = Partial<Record<OperationLevel, { read: boolean; write: boolean }>>

const GROUP = /^(account|basin|stream):(read|write|read\+write|write\+read)$/

/** `account:read,stream:read+write`. */
export function operationGroups(text: string): GroupsForm {
  const groups: GroupsForm = {}
  for (const part of text.split(',')) {
    const [, level, permissions] = (GROUP.exec(part.trim()) ?? []) as [string?, OperationLevel?, string?]
    if (level === undefined || permissions === undefined) {
      throw new CliError(
        2,
        '--op-groups must be a list such as account:read,basin:read+write,stream:write, of the levels account, basin and stream',
      )
    }
    if (groups[level] !== undefined) throw new CliError(2, `--op-groups names ${level} twice`)
    groups[level] = { read: permissions.includes('read'), write: permissions.includes('write') }
  }
  return groups
}

/** Groups as {@link operationGroups} takes them: those that permit something. */
export function operationGroupsText(groups: GroupsForm): string[] {
  return OPERATION_LEVELS.flatMap((level) => {
    const { read = false, write = false } = groups[level] ?? {}
    const permissions = [...(read ? ['read'] : []), ...(write ? ['write'] : [])]
    return permissions.length === 0 ? [] : [`${level}:${permissions.join('+')}`]
  })
}
