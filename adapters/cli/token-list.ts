import type { ResourceSet } from '../../src/model/access.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import {
  arrayOf,
  booleanOf,
  type Decoder,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import { badJson, type JsonObject } from '../../src/wire/json-reader.ts'
import type { Client } from './client.ts'
import { CliError } from './errors.ts'
import type { OperationGroups } from './token-scope.ts'

/** After `/v1`. */
export const TOKENS_PATH = '/access-tokens'

/** Lists all tokens whose ids have the prefix. */
export async function listAllTokens(client: Client, prefix: string): Promise<TokenInfo[]> {
  const tokens: TokenInfo[] = []
  let startAfter = ''
  for (;;) {
    const query = new URLSearchParams({ prefix, start_after: startAfter })
    const page = await client.json({ method: 'GET', path: `${TOKENS_PATH}?${query}` }, tokenPageOf)
    tokens.push(...page.access_tokens)
    if (!page.has_more) return tokens
    const last = page.access_tokens.at(-1)?.id ?? ''
    // Without progress, the next page would be the same one, forever.
    if (compareUtf8(last, startAfter) <= 0) throw new CliError(1, 'the server lists tokens out of order')
    startAfter = last
  }
}

/** Decodes the response to an issue request. */
export function decodeIssuedToken(body: JsonObject): string {
  const token = required(body, 'access_token', stringOf)
  if (!/^[!-~]+$/.test(token)) throw badJson('a token must be visible ASCII', 'access_token')
  return token
}

/** A token in a list, as the HTTP API represents it (docs/protocol.md "Listing tokens"). */
export interface TokenInfo {
  readonly id: string
  readonly expires_at: string | null
  readonly auto_prefix_streams: boolean
  readonly scope: {
    readonly basins: ResourceSet | null
    readonly streams: ResourceSet | null
    readonly access_tokens: ResourceSet | null
    readonly op_groups: OperationGroups
    /** Strings, because a newer service may have more operations. */
    readonly ops: readonly string[]
  }
}

export interface TokenPage {
  readonly access_tokens: readonly TokenInfo[]
  readonly has_more: boolean
}

/** Decodes a page of tokens. */
export function tokenPageOf(page: JsonObject): TokenPage {
  return {
    access_tokens: required(page, 'access_tokens', (value, name) =>
      arrayOf(value, name).map((token) => tokenInfoOf(token, name)),
    ),
    has_more: required(page, 'has_more', booleanOf),
  }
}

const tokenInfoOf: Decoder<TokenInfo> = (value, name) => {
  const token = objectOf(value, name)
  return {
    id: required(token, 'id', stringOf),
    expires_at: nullable(token, 'expires_at', stringOf) ?? null,
    auto_prefix_streams: nullable(token, 'auto_prefix_streams', booleanOf) ?? false,
    scope: required(token, 'scope', scopeOf),
  }
}

const scopeOf: Decoder<TokenInfo['scope']> = (value, name) => {
  const scope = objectOf(value, name)
  return {
    basins: nullable(scope, 'basins', resourceSetOf) ?? null,
    streams: nullable(scope, 'streams', resourceSetOf) ?? null,
    access_tokens: nullable(scope, 'access_tokens', resourceSetOf) ?? null,
    op_groups: nullable(scope, 'op_groups', groupsOf) ?? {},
    ops: nullable(scope, 'ops', (ops, role) => arrayOf(ops, role).map((op) => stringOf(op, role))) ?? [],
  }
}

const resourceSetOf: Decoder<ResourceSet> = (value, name) => {
  const set = objectOf(value, name)
  const exact = nullable(set, 'exact', stringOf)
  const prefix = nullable(set, 'prefix', stringOf)
  if (prefix !== undefined) return { prefix }
  if (exact === undefined) throw badJson(`\`${name}\` must have \`exact\` or \`prefix\``, name)
  return { exact }
}

const NOTHING = { read: false, write: false }

const groupsOf: Decoder<OperationGroups> = (value, name) => {
  const groups = objectOf(value, name)
  return {
    account: nullable(groups, 'account', groupOf) ?? NOTHING,
    basin: nullable(groups, 'basin', groupOf) ?? NOTHING,
    stream: nullable(groups, 'stream', groupOf) ?? NOTHING,
  }
}

const groupOf: Decoder<{ read: boolean; write: boolean }> = (value, name) => {
  const group = objectOf(value, name)
  return {
    read: nullable(group, 'read', booleanOf) ?? false,
    write: nullable(group, 'write', booleanOf) ?? false,
  }
}
