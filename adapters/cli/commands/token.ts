import { GROUP_OF, permitsOperation } from '../../../src/core/permission.ts'
import { type AccessTokenInfo, type AccessTokenInput, HeadwaterError } from '../../../src/index.ts'
import {
  accessScope,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  OPERATIONS,
} from '../../../src/model/access.ts'
import { timeText } from '../../../src/wire/json.ts'
import { ACCESS_TOKEN_PAGE } from '../../../src/wire/json-resources.ts'
import { type CliCommand, command, flag, positional, type Values, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable, quoteArg, redact } from '../errors.ts'
import { table } from '../output.ts'
import { type CliTarget, parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { type IssueOptions, issuedToken, operationGroupsText, resourceSetText } from '../token-scope.ts'

const TOKEN_DEFINITIONS = {
  ...TARGET_DEFINITIONS,
  json: flag('Print JSON'),
} as const

const ISSUE_DEFINITIONS = {
  id: positional('Unique id of the new token, 1 to 96 bytes'),
  basins: withValue('SET', 'Basins in scope: NAME, PREFIX* or * for all. Default: none'),
  streams: withValue('SET', 'Streams of these basins in scope, in the same form'),
  'access-tokens': withValue(
    'SET',
    'Ids of access tokens that it may list, issue and revoke, in the same form',
  ),
  ops: withValue('LIST', 'Permitted operations, such as read,append,check-tail'),
  'op-groups': withValue('LIST', 'Permitted groups of operations, such as account:read,stream:read+write'),
  scope: withValue('JSON', 'The scope as JSON, instead of the five options above'),
  'expires-in': withValue('DURATION', 'Lifetime: 90s, 15m, 24h, 30d'),
  'expires-at': withValue('TIME', 'Expiry time, such as 2030-01-31T12:00:00Z'),
  'auto-prefix': flag('Prepend the prefix of --streams to every stream name in its requests'),
  ...TOKEN_DEFINITIONS,
} as const

const ISSUE_NOTES = [
  'Standard output contains only the token.',
  'A * at the end of --basins, --streams and --access-tokens matches any text; quote it. For names that',
  'end in *, use --scope with the JSON of the HTTP API:',
  '  {"basins":{"exact":"a"},"streams":{"prefix":"s/"},"ops":["read"],"op_groups":{"account":{"read":true}}}',
  'The levels of groups are account, basin and stream. By default, a token expires with its issuer.',
  'Operations:',
  ...[0, 6, 11, 17, 22].map((start, i, starts) => `  ${OPERATIONS.slice(start, starts[i + 1]).join(' ')}`),
]

const LIST_DEFINITIONS = {
  prefix: withValue('PREFIX', 'Only tokens whose ids have this prefix'),
  ...TOKEN_DEFINITIONS,
} as const

const REVOKE_DEFINITIONS = {
  id: positional('Id of the token; may be repeated', { isRepeated: true }),
  ...TOKEN_DEFINITIONS,
} as const

function parseIssue(parsed: Values<typeof ISSUE_DEFINITIONS>, context: CliContext) {
  const options: IssueOptions = {
    id: checkId(parsed.id),
    basins: parsed.basins,
    streams: parsed.streams,
    accessTokens: parsed['access-tokens'],
    ops: parsed.ops,
    opGroups: parsed['op-groups'],
    scope: parsed.scope,
    expiresIn: parsed['expires-in'],
    expiresAt: parsed['expires-at'],
    autoPrefix: parsed['auto-prefix'],
  }
  const input = issuedToken(options, context.clock.now())
  return { target: parseTarget(parsed, context.env), json: parsed.json, input }
}

function parseList(parsed: Values<typeof LIST_DEFINITIONS>, { env }: CliContext) {
  const { prefix = '', json } = parsed
  const problem = accessTokenPrefixProblem(prefix, 'prefix')
  if (problem !== undefined) throw new CliError(2, `\`--prefix\`: ${problem}`)
  return { target: parseTarget(parsed, env), json, prefix }
}

function parseRevoke(parsed: Values<typeof REVOKE_DEFINITIONS>, { env }: CliContext) {
  const ids = [...new Set(parsed.id.map(checkId))]
  return { target: parseTarget(parsed, env), json: parsed.json, ids }
}

/** Checked before the request: in the path of a URL, `.` and `..` mean something else. */
function checkId(id: string): string {
  const problem = accessTokenIdProblem(id)
  if (problem !== undefined) throw new CliError(2, problem)
  return id
}

/** `headwater token issue`: prints the token, and notes on standard error. */
async function issueCommand(args: ReturnType<typeof parseIssue>, context: CliContext): Promise<void> {
  const { target, input, json } = args
  const token = await withHeadwater({ target }, context, (hw) => hw.issueAccessToken(input))
  // It may be printed on a terminal.
  if (!/^[!-~]+$/.test(token)) throw new CliError(1, 'the server returned an invalid token; revoke it')
  context.print(json ? JSON.stringify({ id: input.id, access_token: token }) : token)
  for (const line of issueNotes(input, target)) context.printError(line)
}

/** `headwater token list`. */
async function listCommand(args: ReturnType<typeof parseList>, context: CliContext): Promise<void> {
  const { target, prefix, json } = args
  const items: AccessTokenInfo[] = []
  await withHeadwater({ target }, context, async (hw) => {
    for await (const token of hw.listAllAccessTokens({ prefix })) items.push(token)
  })
  if (json) {
    const { access_tokens } = JSON.parse(ACCESS_TOKEN_PAGE.text({ items, hasMore: false }))
    context.print(JSON.stringify({ access_tokens }))
  } else for (const line of table([HEADINGS, ...items.map(tableCells)])) context.print(line)
}

/** `headwater token revoke`: continues with the next id if one is unknown or not permitted. */
async function revokeCommand(args: ReturnType<typeof parseRevoke>, context: CliContext): Promise<void> {
  const { target, ids, json } = args
  const revoked: string[] = []
  let failures = 0
  try {
    await withHeadwater({ target }, context, async (hw) => {
      for (const [index, id] of ids.entries()) {
        try {
          await hw.revokeAccessToken(id)
        } catch (error) {
          if (!HeadwaterError.is(error) || !concernsOneToken(error)) throw error
          const position = `(id ${index + 1} of ${ids.length})`
          const problem = redact(`${error.message} (${error.code})`, id, position)
          const message = `${quoteArg(id, position)}: ${problem}`
          if (ids.length === 1) throw new CliError(1, message)
          failures++
          context.printError(`headwater: ${message}`)
          continue
        }
        revoked.push(id)
        if (!json) context.print(`Revoked ${printable(id)}`)
      }
    })
  } finally {
    if (json) context.print(JSON.stringify({ revoked }))
  }
  if (failures > 0) throw new CliError(1, `${failures} of ${ids.length} access tokens not revoked`)
}

function concernsOneToken({ code }: HeadwaterError): boolean {
  return code === 'access_token_not_found' || code === 'permission_denied'
}

function issueNotes(input: AccessTokenInput, target: CliTarget): string[] {
  return [
    `Issued access token ${printable(input.id)}, ${expiryNote(input, target)}. It is not shown again.`,
    ...emptyScopeNotes(input),
  ]
}

function expiryNote({ expiresAt }: AccessTokenInput, { kind }: CliTarget): string {
  if (expiresAt != null) return `valid until ${timeText(expiresAt)}`
  return kind === 'service' ? 'valid as long as the token that issued it' : 'valid until it is revoked'
}

/** A scope that permits operations on basins or streams but matches none is legal, but hardly intended. */
function emptyScopeNotes(input: AccessTokenInput): string[] {
  const scope = accessScope(input.scope)
  const levels = new Set(
    OPERATIONS.filter((operation) => permitsOperation(scope, operation)).map(
      (operation) => GROUP_OF[operation][0],
    ),
  )
  const notes: string[] = []
  if ((levels.has('basin') || levels.has('stream')) && scope.basins === null) {
    notes.push('Note: no basin is in its scope; use --basins to add some')
  }
  if (levels.has('stream') && scope.streams === null) {
    notes.push('Note: no stream is in its scope; use --streams to add some')
  }
  return notes
}

const HEADINGS = ['ID', 'EXPIRES', 'BASINS', 'STREAMS', 'ACCESS TOKENS', 'OPERATIONS', 'AUTO-PREFIX']

function tableCells({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInfo): string[] {
  const operations = [...operationGroupsText(scope.opGroups), ...scope.ops]
  return [
    id,
    expiresAt === null ? 'never' : timeText(expiresAt),
    resourceSetText(scope.basins),
    resourceSetText(scope.streams),
    resourceSetText(scope.accessTokens),
    operations.join(',') || '-',
    autoPrefixStreams ? 'yes' : 'no',
  ]
}

export const TOKEN: CliCommand = {
  description: 'Issue, list and revoke access tokens',
  commands: {
    issue: command({
      description: 'Issue an access token and print it; it is not shown again',
      examples: [
        'TOKEN=$(headwater token issue ci --basins "ci-*" --streams "*" --op-groups stream:read+write)',
        'headwater token issue tail --basins app-logs --streams "web/*" --ops read,check-tail --expires-in 30d',
      ],
      notes: ISSUE_NOTES,
      definitions: ISSUE_DEFINITIONS,
      parse: parseIssue,
      run: issueCommand,
    }),
    list: command({
      description: 'List the ids and scopes of access tokens',
      examples: ['headwater token list --prefix ci'],
      definitions: LIST_DEFINITIONS,
      parse: parseList,
      run: listCommand,
    }),
    revoke: command({
      description: 'Revoke access tokens by id, with immediate effect',
      examples: ['headwater token revoke ci tail'],
      definitions: REVOKE_DEFINITIONS,
      parse: parseRevoke,
      run: revokeCommand,
    }),
  },
}
