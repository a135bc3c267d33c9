import { Option } from '@commander-js/extra-typings'
import { isEmptyScope } from '../../../src/core/permission.ts'
import type { AccessTokenInfo } from '../../../src/index.ts'
import {
  accessScope,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  OPERATION_LEVELS,
  OPERATIONS,
  type Operation,
  type OperationLevel,
  type ResourceSet,
} from '../../../src/model/access.ts'
import { timeOf, timeText } from '../../../src/wire/json.ts'
import { ACCESS_TOKEN_PAGE } from '../../../src/wire/json-resources.ts'
import type { CliContext } from '../context.ts'
import { CliError, cliErrorOf, printable, redact } from '../errors.ts'
import { newCommand, targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { withHeadwater } from '../target.ts'
import { duration, fail, nameSet } from '../values.ts'

export const tokenCommand = (context: CliContext) =>
  newCommand('token', { description: 'Issue, list and revoke access tokens' })
    .addCommand(issueCommand(context))
    .addCommand(listCommand(context))
    .addCommand(revokeCommand(context))

const issueCommand = (context: CliContext) =>
  targetCommand('issue', {
    description: 'Issue an access token and print it; it is not shown again',
    examples: [
      'TOKEN=$(headwater token issue ci --basins "ci-*" --streams "*" --op-groups stream:read+write)',
      'headwater token issue tail --basins app-logs --streams "web/*" --ops read,check-tail --expires-in 30d',
    ],
    notes: [
      'Standard output contains only the token.',
      'A * at the end of --basins, --streams and --access-tokens matches any text; quote it. A = at the',
      'beginning matches the exact rest, for names that begin with = or end in *.',
      'The levels of groups are account, basin and stream. By default, a token expires with its issuer.',
      'Operations:',
      ...[0, 6, 11, 17, 22].map((start, i, all) => `  ${OPERATIONS.slice(start, all[i + 1]).join(' ')}`),
    ],
  })
    .argument('<ID>', 'Unique id of the new token, 1 to 96 bytes', tokenId)
    .option('--basins <SET>', 'Basins in scope: NAME, PREFIX* or * for all. Default: none', nameSet('basins'))
    .option('--streams <SET>', 'Streams of these basins in scope, in the same form', nameSet('streams'))
    .option(
      '--access-tokens <SET>',
      'Ids of access tokens that it may list, issue and revoke, in the same form',
      nameSet('accessTokens'),
    )
    .option('--ops <LIST>', 'Permitted operations, such as read,append,check-tail', operations)
    .option(
      '--op-groups <LIST>',
      'Permitted groups of operations, such as account:read,stream:read+write',
      operationGroups,
    )
    .addOption(
      new Option('--expires-in <DURATION>', 'Lifetime: 90s, 15m, 24h, 30d')
        .conflicts('expiresAt')
        .argParser(duration),
    )
    .option('--expires-at <TIME>', 'Expiry time, such as 2030-01-31T12:00:00Z', expiryTime)
    .option('--auto-prefix', 'Prepend the prefix of --streams to every stream name in its requests')
    .option('--json', 'Print JSON')
    .action((id, options) => {
      const { basins, streams, accessTokens, ops = [], opGroups = {}, autoPrefix, expiresIn, json } = options
      const scope = { basins, streams, accessTokens, ops, opGroups }
      if (isEmptyScope(accessScope(scope))) {
        throw new CliError(2, 'the token would permit nothing; use `--ops` or `--op-groups`')
      }
      const expiresAt =
        expiresIn === undefined ? options.expiresAt : new Date(context.clock.now() + expiresIn)
      const input = { id, scope, expiresAt, autoPrefixStreams: autoPrefix ?? false }
      return withHeadwater(options, context, async (hw, server) => {
        const token = await hw.issueAccessToken(input)
        // It may be printed on a terminal.
        if (!/^[!-~]+$/.test(token)) {
          throw new CliError(1, 'the server returned an invalid token; revoke it')
        }
        context.print(json ? JSON.stringify({ id, access_token: token }) : token)
        const byDefault = server !== undefined ? 'as long as the token that issued it' : 'until it is revoked'
        const validity = expiresAt === undefined ? byDefault : `until ${timeText(expiresAt)}`
        context.printError(`Issued access token ${printable(id)}, valid ${validity}. It is not shown again.`)
      })
    })

function expiryTime(text: string): Date {
  try {
    return timeOf(text, 'it')
  } catch {
    return fail('It must be a date and time such as 2030-01-31T12:00:00Z')
  }
}

/** Checked before the request: in the path of a URL, `.` and `..` mean something else. */
function tokenId(id: string): string {
  const problem = accessTokenIdProblem(id)
  return problem === undefined ? id : fail(`The ${problem}`)
}

/** Formats a set as {@link nameSet} parses it; `-` for none. */
function setText(set: ResourceSet | null): string {
  if (set === null || ('exact' in set && set.exact === '')) return '-'
  if ('prefix' in set) return `${set.prefix}*`
  return /^(=.*|-|.*\*)$/s.test(set.exact) ? `=${set.exact}` : set.exact
}

function operations(text: string): Operation[] {
  const all = text.split(',').map((part) => OPERATIONS.find((one) => one === part.trim()))
  return all.every((one) => one !== undefined) ? all : fail(`It must list some of ${OPERATIONS.join(', ')}`)
}

type OperationGroups = Partial<Record<OperationLevel, { read: boolean; write: boolean }>>

const GROUP = /^(account|basin|stream):(read|write|read\+write|write\+read)$/

/** Parses a list such as `account:read,stream:read+write`. */
function operationGroups(text: string): OperationGroups {
  const groups: OperationGroups = {}
  for (const part of text.split(',')) {
    const [, level, permissions] = (GROUP.exec(part.trim()) ?? []) as [string?, OperationLevel?, string?]
    if (level === undefined || permissions === undefined || groups[level] !== undefined) {
      fail('It must be a list such as `account:read,basin:write,stream:read+write`, with each level once')
    }
    groups[level] = { read: permissions.includes('read'), write: permissions.includes('write') }
  }
  return groups
}

/** Formats groups as {@link operationGroups} parses them. Omits groups that permit nothing. */
function operationGroupTexts(groups: OperationGroups): string[] {
  return OPERATION_LEVELS.flatMap((level) => {
    const { read = false, write = false } = groups[level] ?? {}
    const permissions = [...(read ? ['read'] : []), ...(write ? ['write'] : [])]
    return permissions.length === 0 ? [] : [`${level}:${permissions.join('+')}`]
  })
}

const HEADINGS = ['ID', 'EXPIRES', 'BASINS', 'STREAMS', 'ACCESS TOKENS', 'OPERATIONS', 'AUTO-PREFIX']

const listCommand = (context: CliContext) =>
  targetCommand('list', {
    description: 'List the ids and scopes of access tokens',
    examples: ['headwater token list --prefix ci'],
  })
    .option('--prefix <PREFIX>', 'Only tokens whose ids have this prefix')
    .option('--json', 'Print JSON')
    .action((options) => {
      const { prefix = '', json } = options
      const problem = accessTokenPrefixProblem(prefix, 'prefix')
      if (problem !== undefined) throw new CliError(2, `\`--prefix\`: ${problem}`)
      return withHeadwater(options, context, async (hw) => {
        const items: AccessTokenInfo[] = []
        for await (const token of hw.listAllAccessTokens({ prefix })) items.push(token)
        if (!json) return printTable([HEADINGS, ...items.map(cellsOf)], context)
        const { access_tokens } = JSON.parse(ACCESS_TOKEN_PAGE.text({ items, hasMore: false }))
        context.print(JSON.stringify({ access_tokens }))
      })
    })

function cellsOf({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInfo): string[] {
  const permitted = [...operationGroupTexts(scope.opGroups), ...scope.ops]
  return [
    id,
    expiresAt === null ? 'never' : timeText(expiresAt),
    setText(scope.basins),
    setText(scope.streams),
    setText(scope.accessTokens),
    permitted.join(',') || '-',
    autoPrefixStreams ? 'yes' : 'no',
  ]
}

const revokeCommand = (context: CliContext) =>
  targetCommand('revoke', {
    description: 'Revoke access tokens by id, with immediate effect',
    examples: ['headwater token revoke ci tail'],
    notes: ['Stops at the first id that is unknown or not permitted.'],
  })
    .argument('<ID...>', 'Id of the token; may be repeated', (id: string, before?: readonly string[]) => [
      ...new Set([...(before ?? []), tokenId(id)]),
    ])
    .option('--json', 'Print JSON')
    .action(async (ids, options) => {
      const revoked: string[] = []
      try {
        await withHeadwater(options, context, async (hw) => {
          for (const id of ids) {
            await hw.revokeAccessToken(id)
            revoked.push(id)
            if (!options.json) context.print(`Revoked ${printable(id)}`)
          }
        })
      } catch (error) {
        const reported = cliErrorOf(error)
        if (reported === undefined) throw error
        // The message names the id, which may be a token.
        throw new CliError(reported.exitCode, redact(reported.message, ids[revoked.length] ?? ''))
      } finally {
        if (options.json) context.print(JSON.stringify({ revoked }))
      }
    })
