import type { AccessTokenInput } from '../model/access.ts'
import { millisecondsOf } from '../model/validation.ts'

/** Encodes the body of POST access-tokens (docs/protocol.md "Issuing a token"). */
export function accessTokenText({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInput): string {
  const { basins, streams, accessTokens, opGroups, ops } = scope
  return JSON.stringify({
    id,
    expires_at: expiresAt == null ? undefined : new Date(millisecondsOf(expiresAt)).toISOString(),
    auto_prefix_streams: autoPrefixStreams,
    scope: { basins, streams, access_tokens: accessTokens, op_groups: opGroups, ops },
  })
}
