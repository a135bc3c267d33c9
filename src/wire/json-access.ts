import {
  type AccessScope,
  type AccessScopeInput,
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  type GroupPermissions,
  type ResourceKind,
  type ResourceSet,
  resourceSetProblem,
} from '../model/access.ts'
import type { Page } from '../model/info.ts'
import { OPERATIONS } from '../model/operations.ts'
import {
  arrayOf,
  booleanOf,
  type Decoder,
  dateTimeOf,
  dateTimeText,
  enumOf,
  keptStringOf,
  nullable,
  objectOf,
  required,
  stringOf,
} from './json-members.ts'
import { badJson, readJson } from './json-reader.ts'

/** Decodes the body of POST access-tokens (docs/protocol.md "Issuing a token"). Throws 400 `bad_json`. */
export function decodeAccessToken(body: Uint8Array): AccessTokenInput {
  const object = objectOf(readJson(body), 'body')
  return {
    id: required(object, 'id', idOf),
    expiresAt: nullable(object, 'expires_at', dateTimeOf),
    expiresAtText: nullable(object, 'expires_at', stringOf),
    autoPrefixStreams: nullable(object, 'auto_prefix_streams', booleanOf),
    scope: required(object, 'scope', scopeOf),
  }
}

/** The response to POST: the only one that contains the token. */
export function issuedTokenJson(token: string): string {
  return JSON.stringify({ access_token: token })
}

/** The list of access tokens. */
export function accessTokenPageJson(page: Page<AccessTokenInfo>): string {
  return JSON.stringify({ access_tokens: page.items.map(accessTokenForm), has_more: page.hasMore })
}

const idOf: Decoder<string> = (value, name) => {
  const id = keptStringOf(value, name)
  const problem = accessTokenIdProblem(id)
  if (problem !== undefined) throw badJson(problem, name)
  return id
}

const scopeOf: Decoder<AccessScopeInput> = (value, name) => {
  const object = objectOf(value, name)
  return {
    basins: nullable(object, 'basins', resourceSetOf('basins')),
    streams: nullable(object, 'streams', resourceSetOf('streams')),
    accessTokens: nullable(object, 'access_tokens', resourceSetOf('accessTokens')),
    opGroups: nullable(object, 'op_groups', opGroupsOf),
    ops: nullable(object, 'ops', opsOf),
  }
}

/** Exactly one of `exact` and `prefix`. */
function resourceSetOf(kind: ResourceKind): Decoder<ResourceSet> {
  return (value, name) => {
    const object = objectOf(value, name)
    const exact = nullable(object, 'exact', keptStringOf)
    const prefix = nullable(object, 'prefix', keptStringOf)
    if ((exact === undefined) === (prefix === undefined)) {
      throw badJson(`\`${name}\` must have one of \`exact\` and \`prefix\``, name)
    }
    const set = prefix === undefined ? { exact: exact! } : { prefix }
    const problem = resourceSetProblem(kind, set)
    if (problem !== undefined) throw badJson(problem, name)
    return set
  }
}

const opGroupsOf: Decoder<AccessScopeInput['opGroups']> = (value, name) => {
  const object = objectOf(value, name)
  return {
    account: nullable(object, 'account', groupOf) ?? null,
    basin: nullable(object, 'basin', groupOf) ?? null,
    stream: nullable(object, 'stream', groupOf) ?? null,
  }
}

const groupOf: Decoder<GroupPermissions> = (value, name) => {
  const object = objectOf(value, name)
  return {
    read: nullable(object, 'read', booleanOf) ?? false,
    write: nullable(object, 'write', booleanOf) ?? false,
  }
}

const operationOf = enumOf(OPERATIONS)

const opsOf: Decoder<NonNullable<AccessScopeInput['ops']>> = (value, name) =>
  arrayOf(value, name).map((operation) => operationOf(operation, name))

function accessTokenForm(token: AccessTokenInfo): object {
  const { id, expiresAt, expiresAtText, autoPrefixStreams, scope } = token
  return {
    id,
    expires_at: expiresAtText ?? (expiresAt && dateTimeText(expiresAt)),
    auto_prefix_streams: autoPrefixStreams,
    scope: scopeForm(scope),
  }
}

function scopeForm({ basins, streams, accessTokens, opGroups, ops }: AccessScope): object {
  return { basins, streams, access_tokens: accessTokens, op_groups: opGroups, ops }
}
