import type { Engine } from '../../../src/index.ts'
import { OPERATIONS } from '../../../src/index.ts'
import type { AccessScopeInput } from '../../../src/model/access.ts'

const HOUR_MS = 3_600_000
const ROOT_TOKEN = 'the-root-token-of-the-table'

const EVERY_RESOURCE = { basins: { prefix: '' }, streams: { prefix: '' }, accessTokens: { prefix: '' } }
const BOTH = { read: true, write: true }
const EVERY_GROUP = { account: BOTH, basin: BOTH, stream: BOTH }

/** The token that a caller of each kind presents. */
export interface TokenKind {
  readonly scope: AccessScopeInput
  readonly autoPrefixStreams?: boolean
  /** What happens to it before it is used; by default nothing does. */
  readonly fate?: 'expired' | 'revoked' | 'another secret'
}

const on = (resources: AccessScopeInput, ...ops: NonNullable<AccessScopeInput['ops']>): TokenKind => ({
  scope: { ...resources, ops },
})
const everythingOn = (resources: AccessScopeInput): TokenKind => ({
  scope: { ...resources, opGroups: EVERY_GROUP },
})
const group = (opGroups: AccessScopeInput['opGroups']): TokenKind => ({
  scope: { ...EVERY_RESOURCE, opGroups },
})
const EVERYTHING = everythingOn(EVERY_RESOURCE)
const ACME = { basins: { prefix: 'acme-' }, streams: { prefix: '' } }

/** The tokens of the table. `root` is the root token, the others are issued by the owner. */
export const TOKENS: Readonly<Record<string, TokenKind>> = {
  root: EVERYTHING,
  'every op': on(EVERY_RESOURCE, ...OPERATIONS),
  'account read': group({ account: { read: true } }),
  'account write': group({ account: { write: true } }),
  'basin read': group({ basin: { read: true } }),
  'basin write': group({ basin: { write: true } }),
  'stream read': group({ stream: { read: true } }),
  'stream write': group({ stream: { write: true } }),
  'no resources': everythingOn({}),
  acme: everythingOn({ ...ACME, accessTokens: { prefix: 'team/' } }),
  'only main': everythingOn({
    basins: { exact: 'acme-main' },
    streams: { exact: 'logs/main' },
    accessTokens: { exact: 'team/one' },
  }),
  'only gone': everythingOn({
    basins: { exact: 'acme-gone' },
    streams: { exact: 'logs/gone' },
    accessTokens: { exact: 'team/gone' },
  }),
  audit: everythingOn({
    basins: { exact: 'acme-main' },
    streams: { prefix: 'audit/' },
    accessTokens: { prefix: 'boss/' },
  }),
  prefixed: {
    ...everythingOn({ ...EVERY_RESOURCE, streams: { prefix: 'logs/' } }),
    autoPrefixStreams: true,
  },
  append: on(ACME, 'append'),
  'append, trim': on(ACME, 'append', 'trim'),
  'append, fence': on(ACME, 'append', 'fence'),
  'trim, fence': on(ACME, 'trim', 'fence'),
  'read one': on({ ...ACME, streams: { exact: 'logs/main' } }, 'read'),
  creator: on(EVERY_RESOURCE, 'create-basin', 'create-stream'),
  changer: on(EVERY_RESOURCE, 'reconfigure-basin', 'reconfigure-stream'),
  issuer: on(
    { accessTokens: { prefix: 'team/' } },
    'issue-access-token',
    'revoke-access-token',
    'list-access-tokens',
  ),
  'list streams': on({ basins: { prefix: '' } }, 'list-streams'),
  union: {
    scope: {
      ...EVERY_RESOURCE,
      opGroups: { account: { read: true } },
      ops: ['append', 'delete-stream'],
    },
  },
  metrics: on(
    { ...ACME, streams: { prefix: 'logs/' } },
    'account-metrics',
    'basin-metrics',
    'stream-metrics',
  ),
  expired: { ...EVERYTHING, fate: 'expired' },
  revoked: { ...EVERYTHING, fate: 'revoked' },
  'other secret': { ...EVERYTHING, fate: 'another secret' },
}

/** Makes a token of this kind: what its holder presents. `advance` moves the time of the engine on. */
export async function makeToken(
  owner: Engine,
  name: string,
  advance: (ms: number) => Promise<void>,
): Promise<string> {
  const { scope, autoPrefixStreams, fate } = TOKENS[name]!
  if (name === 'root') {
    await owner.setRootToken(ROOT_TOKEN)
    return ROOT_TOKEN
  }
  const id = `of the table: ${name}`
  const expiresAt = fate === 'expired' ? new Date(owner.now() + HOUR_MS) : null
  const token = await owner.issueAccessToken({ id, scope, autoPrefixStreams, expiresAt })
  if (fate === 'expired') await advance(HOUR_MS)
  if (fate === 'revoked') await owner.revokeAccessToken(id)
  if (fate === 'another secret') return `${token[0] === 'A' ? 'B' : 'A'}${token.slice(1)}`
  return token
}
