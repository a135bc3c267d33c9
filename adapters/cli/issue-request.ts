import { isEmptyScope } from '../../src/core/permission.ts'
import { type AccessTokenInput, OPERATIONS } from '../../src/index.ts'
import { accessScope } from '../../src/model/access.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { decodeAccessToken } from '../../src/wire/json-access.ts'
import { readJsonText } from '../../src/wire/json-reader.ts'
import { JsonObject } from '../../src/wire/json-values.ts'
import { expiryText } from './expiry.ts'
import { CliError, refusingUsage } from './failure.ts'
import { shown } from './printable.ts'
import { type GroupsForm, operationGroups, resourceSet } from './scope-options.ts'

/** The options of `token issue` as they were given. */
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

export interface IssueRequest {
  /** As the API takes it (wire-behaviour.md 9.1). */
  readonly body: Uint8Array
  /** The same, decoded. */
  readonly input: AccessTokenInput
}

/** @throws CliError with exit code 2. */
export function issueRequest(options: IssueOptions, now: number): IssueRequest {
  const { id, autoPrefix } = options
  const scope = options.scope === undefined ? scopeOfOptions(options) : givenScope(options, options.scope)
  const members = { id, expires_at: expiryText(options, now), auto_prefix_streams: autoPrefix }
  // The scope as it was given: parsed and written anew, members that are given twice would pass unnoticed.
  const body = utf8(`${JSON.stringify(members).slice(0, -1)},"scope":${scope}}`)
  const input = refusingUsage(
    () => decodeAccessToken(body),
    options.scope === undefined ? undefined : '--scope',
  )
  if (isEmptyScope(accessScope(input.scope))) {
    throw new CliError(2, 'a token must permit something: give --ops, --op-groups or --scope')
  }
  if (autoPrefix && !(input.scope.streams && 'prefix' in input.scope.streams)) {
    throw new CliError(2, '--auto-prefix needs a prefix in --streams, as in --streams "tenant/*"')
  }
  return { body, input }
}

function scopeOfOptions({ basins, streams, accessTokens, ops, opGroups }: IssueOptions): string {
  return JSON.stringify({
    basins: resourceSet('basins', basins),
    streams: resourceSet('streams', streams),
    access_tokens: resourceSet('accessTokens', accessTokens),
    op_groups: opGroups === undefined ? ({} satisfies GroupsForm) : operationGroups(opGroups),
    ops: ops === undefined ? [] : operations(ops),
  })
}

function givenScope({ basins, streams, accessTokens, ops, opGroups }: IssueOptions, text: string): string {
  if ([basins, streams, accessTokens, ops, opGroups].some((option) => option !== undefined)) {
    throw new CliError(
      2,
      '--scope is the whole scope: it does not go with --basins, --streams, --access-tokens, --ops and --op-groups',
    )
  }
  const document = refusingUsage(() => readJsonText(text), '--scope')
  if (!(document instanceof JsonObject)) throw new CliError(2, '--scope must be a JSON object')
  return text
}

function operations(text: string): string[] {
  return text.split(',').map((part) => {
    const operation = part.trim()
    if ((OPERATIONS as readonly string[]).includes(operation)) return operation
    throw new CliError(
      2,
      `--ops: there is no operation ${shown(operation)}. Operations: ${OPERATIONS.join(', ')}`,
    )
  })
}
