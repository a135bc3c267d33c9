import { isEmptyScope } from '../../src/core/permission.ts'
import { type AccessTokenInput, OPERATIONS } from '../../src/index.ts'
import {
  accessScope,
  OPERATION_LEVELS,
  type OperationLevel,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../../src/model/access.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { parseJson, timeOf, timeText } from '../../src/wire/json.ts'
import { decodeAccessToken } from '../../src/wire/json-resources.ts'
import { CliError, quoteArg, quoteName, validateArgument } from './errors.ts'
import { durationMs } from './times.ts'

/** The options of `token issue` as the user typed them. */
export interface IssueOptions {
  readonly id: string
  readonly basins: string | undefined
  readonly streams: string | undefined
  readonly accessTokens: string | undefined
  readonly ops: string | undefined
  readonly opGroups: string | undefined
  readonly scope: string | undefined
  readonly expiresIn: string | undefined
  readonly expiresAt: string | undefined
  readonly autoPrefix: boolean
}

/**
 * Returns the token that the options describe.
 *
 * @throws CliError with exit code 2.
 */
export function issuedToken(options: IssueOptions, now: number): AccessTokenInput {
  const { id, autoPrefix } = options
  const scope = options.scope === undefined ? scopeOfOptions(options) : checkScope(options, options.scope)
  const members = { id, expires_at: expiryText(options, now), auto_prefix_streams: autoPrefix }
  // The scope is inserted as typed: parsing and serializing it would hide duplicate members.
  const body = utf8(`${JSON.stringify(members).slice(0, -1)},"scope":${scope}}`)
  const input = validateArgument(
    () => decodeAccessToken(body),
    options.scope === undefined ? undefined : '`--scope`',
  )
  if (isEmptyScope(accessScope(input.scope))) {
    throw new CliError(2, 'the token would permit nothing; use `--ops`, `--op-groups` or `--scope`')
  }
  if (autoPrefix && !(input.scope.streams && 'prefix' in input.scope.streams)) {
    throw new CliError(2, '`--auto-prefix` requires a prefix in `--streams`, such as `--streams "tenant/*"`')
  }
  return input
}

function scopeOfOptions({ basins, streams, accessTokens, ops, opGroups }: IssueOptions): string {
  return JSON.stringify({
    basins: resourceSet('basins', basins),
    streams: resourceSet('streams', streams),
    access_tokens: resourceSet('accessTokens', accessTokens),
    op_groups: opGroups === undefined ? ({} satisfies OperationGroups) : operationGroups(opGroups),
    ops: ops === undefined ? [] : operations(ops),
  })
}

function checkScope({ basins, streams, accessTokens, ops, opGroups }: IssueOptions, text: string): string {
  if ([basins, streams, accessTokens, ops, opGroups].some((option) => option !== undefined)) {
    throw new CliError(
      2,
      '`--scope` cannot be combined with `--basins`, `--streams`, `--access-tokens`, `--ops` and ' +
        '`--op-groups`',
    )
  }
  const document = validateArgument(() => parseJson(text), '`--scope`')
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new CliError(2, '`--scope` must be a JSON object')
  }
  return text
}

function operations(text: string): string[] {
  return text.split(',').map((part) => {
    const operation = part.trim()
    if ((OPERATIONS as readonly string[]).includes(operation)) return operation
    throw new CliError(
      2,
      `unknown operation ${quoteArg(operation)} in \`--ops\`; expected ${OPERATIONS.join(', ')}`,
    )
  })
}

const SET_OPTIONS = { basins: '--basins', streams: '--streams', accessTokens: '--access-tokens' } as const

/** Parses `NAME`, `PREFIX*` or `*`. Returns null for an option that is not given. */
function resourceSet(kind: ResourceKind, text: string | undefined): ResourceSet | null {
  if (text === undefined) return null
  const option = SET_OPTIONS[kind]
  if (text === '') {
    throw new CliError(2, `\`${option}\` must not be empty; omit it to match none, or use \`*\` to match all`)
  }
  const set = text.endsWith('*') ? { prefix: text.slice(0, -1) } : { exact: text }
  const problem = resourceSetProblem(kind, set)
  if (problem !== undefined) throw new CliError(2, `invalid \`${option}\` ${quoteName(text)}: ${problem}`)
  return set
}

/** Formats a set as {@link resourceSet} parses it: `-` for none, JSON for a set that it cannot express. */
export function resourceSetText(set: ResourceSet | null): string {
  if (set === null || ('exact' in set && set.exact === '')) return '-'
  if ('prefix' in set) return `${set.prefix}*`
  return set.exact === '-' || set.exact.endsWith('*') ? JSON.stringify(set) : set.exact
}

export type OperationGroups = Partial<Record<OperationLevel, { read: boolean; write: boolean }>>

const GROUP = /^(account|basin|stream):(read|write|read\+write|write\+read)$/

/** Parses a list such as `account:read,stream:read+write`. */
function operationGroups(text: string): OperationGroups {
  const groups: OperationGroups = {}
  for (const part of text.split(',')) {
    const [, level, permissions] = (GROUP.exec(part.trim()) ?? []) as [string?, OperationLevel?, string?]
    if (level === undefined || permissions === undefined) {
      throw new CliError(
        2,
        `invalid group ${quoteArg(part.trim())} in \`--op-groups\`; ` +
          'expected a list such as `account:read,basin:write,stream:read+write`',
      )
    }
    if (groups[level] !== undefined) throw new CliError(2, `\`--op-groups\` contains \`${level}\` twice`)
    groups[level] = { read: permissions.includes('read'), write: permissions.includes('write') }
  }
  return groups
}

/** Formats groups as {@link operationGroups} parses them. Omits groups that permit nothing. */
export function operationGroupsText(groups: OperationGroups): string[] {
  return OPERATION_LEVELS.flatMap((level) => {
    const { read = false, write = false } = groups[level] ?? {}
    const permissions = [...(read ? ['read'] : []), ...(write ? ['write'] : [])]
    return permissions.length === 0 ? [] : [`${level}:${permissions.join('+')}`]
  })
}

/** RFC 3339 has four digits for the year. */
const EXPIRY_MAX_MS = Date.UTC(9999, 11, 31)

/** Returns the expiry of `--expires-in` or `--expires-at` in RFC 3339, null if neither is given. */
function expiryText(
  { expiresIn, expiresAt }: Pick<IssueOptions, 'expiresIn' | 'expiresAt'>,
  now: number,
): string | null {
  if (expiresIn !== undefined && expiresAt !== undefined) {
    throw new CliError(2, '`--expires-in` cannot be combined with `--expires-at`')
  }
  if (expiresIn !== undefined) {
    return timeText(new Date(now + parseDuration(expiresIn, EXPIRY_MAX_MS - now)))
  }
  if (expiresAt === undefined) return null
  return timeText(
    validateArgument(() => timeOf(expiresAt, '--expires-at'), `invalid time ${quoteArg(expiresAt)}`),
  )
}

function parseDuration(text: string, maxMs: number): number {
  const ms = durationMs(text)
  if (ms === undefined) {
    throw new CliError(
      2,
      `invalid duration ${quoteArg(text)}; \`--expires-in\` must be a positive integer with s, m, h or ` +
        'd, such as 90s or 30d',
    )
  }
  if (ms > maxMs) throw new CliError(2, '`--expires-in` must not exceed the year 9999')
  return ms
}
