import { type Grant, OWNER } from '../../../core/permission.ts'
import { isExpired } from '../../../core/retention.ts'
import { HeadwaterError } from '../../../model/errors.ts'
import type { Clock } from '../../../runtime/clock.ts'
import type { StorageSession } from '../../../storage/contract.ts'
import { getDocument, type TokenDocument, type Versioned } from '../../../storage/documents.ts'
import type { HolderPermit, Identity } from '../permit.ts'
import { isUnchanged, type TokenAuthenticator, type TokenLookup } from '../token-access.ts'
import { idOfToken, isSameDigest, TOKEN_CHARACTERS_MAX, tokenDigest } from './token-format.ts'
import { TokenPermit } from './token-permit.ts'

/** How long a caller may act on one look-up of its token, in milliseconds. */
const LOOKUP_VALID_MS = 1_000
/** How many permits are kept. */
const PERMITS_MAX = 1_000

/** Looks up what a token permits. */
export class Authenticator implements TokenAuthenticator {
  readonly #session: StorageSession
  readonly #isShared: () => boolean
  readonly #clock: Clock
  /** The permits of tokens by digest. One that is outdated is found by the version of its document. */
  readonly #permits = new Map<string, HolderPermit>()
  /** How often this engine changed tokens. */
  #revision = 0

  constructor(session: StorageSession, isShared: () => boolean, clock: Clock) {
    this.#session = session
    this.#isShared = isShared
    this.#clock = clock
  }

  async authenticate(token: string | undefined): Promise<TokenLookup> {
    const isText = typeof token === 'string' && token !== ''
    if (!isText || token.length > TOKEN_CHARACTERS_MAX) throw authnError()
    const at = this.#clock.now()
    const revision = this.#revision
    const digest = await tokenDigest(token)
    let permit = this.#permits.get(digest)
    // Other engines may have revoked it, and expired tokens are deleted without notice.
    const mayHaveEnded = permit && (this.#isShared() || permit.identity.grant.expiresAt !== null)
    if (mayHaveEnded && !(await isUnchanged(this.#session, permit!.identity))) permit = undefined
    if (permit === undefined) {
      permit = new TokenPermit(await this.#identify(token, digest))
      // Else it may have been revoked meanwhile.
      if (revision === this.#revision) this.#keep(permit)
    }
    if (isExpired(permit.identity.grant.expiresAt, this.#clock.now())) throw authnError()
    return { permit, at, revision }
  }

  isCurrent({ permit, at, revision }: TokenLookup): boolean {
    const now = this.#clock.now()
    const isRecent = Math.abs(now - at) < LOOKUP_VALID_MS
    return isRecent && revision === this.#revision && !isExpired(permit.identity.grant.expiresAt, now)
  }

  /** Forgets what is known of tokens: this engine has changed some, or may have. */
  forget(): void {
    this.#revision++
    this.#permits.clear()
  }

  #keep(permit: HolderPermit): void {
    if (this.#permits.size >= PERMITS_MAX) this.#permits.delete(this.#permits.keys().next().value!)
    this.#permits.set(permit.identity.digest, permit)
  }

  async #identify(token: string, digest: string): Promise<Identity> {
    const issued = await this.findIssued(token, digest)
    if (issued !== undefined) {
      const { value, version } = issued
      return { grant: grantOf(value), digest, unchanged: unchanged('tokens', value.id, version) }
    }
    const root = await getDocument(this.#session, 'settings', 'root-token')
    if (root === undefined || !isSameDigest(root.value.digest, digest)) throw authnError()
    return { grant: OWNER, digest, unchanged: unchanged('settings', root.key, root.version) }
  }

  /** Resolves to the document of an issued token, expired or not. */
  async findIssued(token: string, digest: string): Promise<Versioned<TokenDocument> | undefined> {
    const id = idOfToken(token)
    const document = id === undefined ? undefined : await getDocument(this.#session, 'tokens', id)
    return document && isSameDigest(document.value.digest, digest) ? document : undefined
  }
}

function unchanged(collection: 'tokens' | 'settings', key: string, expect: number): Identity['unchanged'] {
  return { kind: 'check', collection, key, expect }
}

function grantOf({ id, expiresAt, autoPrefixStreams, scope }: TokenDocument): Grant {
  const { streams } = scope
  const streamPrefix = autoPrefixStreams && streams !== null && 'prefix' in streams ? streams.prefix : ''
  return { tokenId: id, scope, expiresAt, streamPrefix }
}

/** The message is the same for malformed, unknown, revoked and expired tokens. */
export function authnError(): HeadwaterError {
  return new HeadwaterError('authn', 'a valid access token is required')
}

export function tokenEndedError(): HeadwaterError {
  return new HeadwaterError('authn', 'the access token was revoked or has expired')
}
