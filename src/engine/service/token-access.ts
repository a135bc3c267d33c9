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

/** What looks tokens up. */
export interface TokenLookup {
  /** Changes whenever this engine revokes a token or replaces the root token. */
  readonly revision: number
  /** Resolves to what the token permits. Rejects with `authn`. */
  authenticate(token: string | undefined): Promise<HolderPermit>
}

/** Access tokens. The implementation (`tokens/`) loads on first use. */
export interface TokenAccess {
  readonly lookup: TokenLookup
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
