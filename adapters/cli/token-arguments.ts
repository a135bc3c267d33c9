import { parseArgs } from 'citty'
import { accessTokenIdProblem, accessTokenPrefixProblem } from '../../src/model/access.ts'
import { checkArguments } from './check-arguments.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { type IssueOptions, type IssueRequest, issueRequest } from './issue-request.ts'
import { ISSUE_DEFINITIONS, LIST_DEFINITIONS, REVOKE_DEFINITIONS } from './token-definitions.ts'
import { type TokenPlace, tokenPlace } from './token-place.ts'

interface TokenArguments {
  readonly place: TokenPlace
  readonly json: boolean
}

export interface IssueArguments extends TokenArguments {
  readonly request: IssueRequest
}

export interface ListArguments extends TokenArguments {
  readonly prefix: string
}

export interface RevokeArguments extends TokenArguments {
  readonly ids: readonly string[]
}

/** Throws, like its neighbours, a {@link CliError} with exit code 2. */
export function parseIssueArguments(args: readonly string[], context: CliContext): IssueArguments {
  checkArguments(args, ISSUE_DEFINITIONS, 'token issue', { name: 'ID', most: 1 })
  const parsed = parseArgs<typeof ISSUE_DEFINITIONS>([...args], ISSUE_DEFINITIONS)
  const options: IssueOptions = {
    id: checkedId(parsed.id!),
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
  const request = issueRequest(options, context.clock.now())
  return { ...common(parsed, context), request }
}

export function parseListArguments(args: readonly string[], context: CliContext): ListArguments {
  checkArguments(args, LIST_DEFINITIONS, 'token list')
  const parsed = parseArgs<typeof LIST_DEFINITIONS>([...args], LIST_DEFINITIONS)
  const prefix = parsed.prefix ?? ''
  const problem = accessTokenPrefixProblem(prefix, 'prefix')
  if (problem !== undefined) throw new CliError(2, `--prefix: ${problem}`)
  return { ...common(parsed, context), prefix }
}

export function parseRevokeArguments(args: readonly string[], context: CliContext): RevokeArguments {
  checkArguments(args, REVOKE_DEFINITIONS, 'token revoke', { name: 'ID', most: Number.POSITIVE_INFINITY })
  const parsed = parseArgs<typeof REVOKE_DEFINITIONS>([...args], REVOKE_DEFINITIONS)
  return { ...common(parsed, context), ids: [...new Set(parsed._.map(checkedId))] }
}

/** Checked here also because a URL would take `.` and `..` for something else. */
function checkedId(id: string): string {
  const problem = accessTokenIdProblem(id)
  if (problem !== undefined) throw new CliError(2, problem)
  return id
}

interface CommonValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly dir?: string | undefined
  readonly json: boolean
}

function common({ url, token, dir, json }: CommonValues, context: CliContext): TokenArguments {
  return { place: tokenPlace({ url, token, directory: dir }, context.env), json }
}
