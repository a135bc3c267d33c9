import type { AccessTokenInfo, AccessTokenInput } from '../../model/access.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import type { SharedSignal } from '../../runtime/abort.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { HolderPermit, Identity } from './permit.ts'

/** Ends what a token opened when the token ends. */
export interface TokenWatch {
  /** Aborts with `authn` when the token is revoked or expires. */
  readonly ended: SharedSignal
  /** Stops watching. */
  release(): void
}

/** The outcome of the look-up of a token. */
export interface TokenLookup {
  readonly permit: HolderPermit
  /** The time at which the look-up began, in milliseconds. */
  readonly at: number
  /** How often this engine had changed tokens by then. */
  readonly revision: number
}

/** Looks tokens up. */
export interface TokenAuthenticator {
  /** Rejects with the same `authn` error for malformed, unknown, revoked and expired tokens. */
  authenticate(token: string | undefined): Promise<TokenLookup>
  /**
   * Whether a caller may act on a look-up: for a second, unless the token expires or this engine changes
   * tokens.
   */
  isCurrent(lookup: TokenLookup): boolean
}

/** Access tokens. The implementation (`tokens/`) loads on first use. */
export interface TokenAccess {
  readonly authenticator: TokenAuthenticator
  /** Watches the token while a session is open. Rejects with `authn` if it changed since it was looked up. */
  watch(identity: Identity): Promise<TokenWatch>
  /**
   * Returns a copy of the token to issue with all members of its scope, so that what was checked is what is
   * issued. Throws `invalid` for unknown members.
   */
  copyInput(input: AccessTokenInput): AccessTokenInput
  /**
   * Resolves to the token, which is not stored and cannot be shown again. Without an issuer the owner issues
   * it.
   */
  issue(input: AccessTokenInput, issuer?: Identity): Promise<string>
  list(query: ListQuery): Promise<Page<AccessTokenInfo>>
  revoke(id: string): Promise<void>
  setRoot(token: string): Promise<void>
  createRoot(): Promise<string | undefined>
  close(): void
}

/** Whether the token is still as it was when it was looked up. */
export async function isUnchanged(session: StorageSession, { unchanged }: Identity): Promise<boolean> {
  const document = await session.get(unchanged.collection, unchanged.key)
  return document?.version === unchanged.expect
}
