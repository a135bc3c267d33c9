import type { ResourceSet } from '../../src/index.ts'
import {
  arrayOf,
  booleanOf,
  type Decoder,
  nullable,
  objectOf,
  required,
  stringOf,
} from '../../src/wire/json-members.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import { badJson } from '../../src/wire/json-values.ts'
import type { GroupsForm } from './scope-options.ts'

/** What a list tells of a token, as it stands on the wire (wire-behaviour.md 9.2). */
export interface TokenInfo {
  readonly id: string
  readonly expires_at: string | null
  readonly auto_prefix_streams: boolean
  readonly scope: {
    readonly basins: ResourceSet | null
    readonly streams: ResourceSet | null
    readonly access_tokens: ResourceSet | null
    readonly op_groups: GroupsForm
    /** Any text: a service may know operations that this version does not. */
    readonly ops: readonly string[]
  }
}

export interface TokenPage {
  readonly access_tokens: readonly TokenInfo[]
  readonly has_more: boolean
}

/** Throws 400 `bad_json` for what is no such page. */
export function decodeTokenPage(body: Uint8Array): TokenPage {
  const page = objectOf(readJson(body), 'body')
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

const groupsOf: Decoder<GroupsForm> = (value, name) => {
  const groups = objectOf(value, name)
  return {
    account: nullable(groups, 'account', groupOf) ?? NOTHING,
    basin: nullable(groups, 'basin', groupOf) ?? NOTHING,
    stream: nullable(groups, 'stream', groupOf) ?? NOTHING,
  }
}

const NOTHING = { read: false, write: false }

const groupOf: Decoder<{ read: boolean; write: boolean }> = (value, name) => {
  const group = objectOf(value, name)
  return {
    read: nullable(group, 'read', booleanOf) ?? false,
    write: nullable(group, 'write', booleanOf) ?? false,
  }
}
