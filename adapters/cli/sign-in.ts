import type { Engine } from '../../src/index.ts'
import type { AccessScopeInput } from '../../src/model/access.ts'
import type { RootToken } from './root-token.ts'

const TOKEN_ID = 'console-sign-in'
const VALID_MS = 12 * 3_600_000

const EVERYTHING: AccessScopeInput = {
  basins: { prefix: '' },
  streams: { prefix: '' },
  accessTokens: { prefix: '' },
  opGroups: {
    account: { read: true, write: true },
    basin: { read: true, write: true },
    stream: { read: true, write: true },
  },
}

/**
 * The token of the link to the console: the root token if this start has created and printed it. On a
 * terminal otherwise an access token for 12 hours, which replaces that of an earlier start; elsewhere none,
 * because output that is kept must not hold a secret.
 */
export async function signInToken(
  hw: Engine,
  access: 'open' | RootToken,
  isTerminal: boolean,
): Promise<string | undefined> {
  if (access === 'open') return undefined
  if (access.source === 'new') return access.token
  if (!isTerminal) return undefined
  await hw.revokeAccessToken(TOKEN_ID).catch(() => {})
  return hw.issueAccessToken({ id: TOKEN_ID, scope: EVERYTHING, expiresAt: new Date(Date.now() + VALID_MS) })
}
