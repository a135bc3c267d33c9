import type { Grant } from '../../core/permission.ts'
import type { AccessScope, AccessTokenInfo } from '../../model/access.ts'

/** Collection `tokens`, key: the id. Persisted: members may be added, never renamed or given another meaning. */
export interface TokenDocument {
  readonly id: string
  /** SHA-256 of the token in hexadecimal digits; the token itself is nowhere. */
  readonly digest: string
  /** Milliseconds; null is never. */
  readonly expiresAt: number | null
  readonly autoPrefixStreams: boolean
  readonly scope: AccessScope
}

/** Collection `settings`, key {@link ROOT_TOKEN_KEY}. */
export interface RootTokenDocument {
  readonly digest: string
}

export const ROOT_TOKEN_KEY = 'root-token'

export function tokenInfo(document: TokenDocument): AccessTokenInfo {
  const { id, expiresAt, autoPrefixStreams, scope } = document
  return { id, expiresAt: expiresAt === null ? null : new Date(expiresAt), autoPrefixStreams, scope }
}

export function grantOf({ id, expiresAt, autoPrefixStreams, scope }: TokenDocument): Grant {
  const { streams } = scope
  const streamPrefix = autoPrefixStreams && streams !== null && 'prefix' in streams ? streams.prefix : ''
  return { tokenId: id, scope, expiresAt, streamPrefix }
}
