import { type Grant, OWNER } from '../../../core/permission.ts'
import { isExpired } from '../../../core/retention.ts'
import type { Clock } from '../../../runtime/clock.ts'
import type { StorageSession } from '../../../storage/contract.ts'
import { ROOT_TOKEN_KEY, type RootTokenDocument, type TokenDocument } from '../../../storage/documents.ts'
import type { Versioned } from '../catalog.ts'
import type { HolderPermit, Identity } from '../permit.ts'
import { authnError } from './errors.ts'
import { idOfToken, isSameDigest, TOKEN_CHARACTERS_MAX, tokenDigest } from './token-format.ts'
import { TokenPermit } from './token-permit.ts'

/** Looks up what a token permits. */
export class Authenticator {
  readonly #session: StorageSession
  readonly #clock: Clock

  constructor(session: StorageSession, clock: Clock) {
    this.#session = session
    this.#clock = clock
  }

  /** Rejects with the same `authn` error for malformed, unknown, revoked and expired tokens. */
  async authenticate(token: string | undefined): Promise<HolderPermit> {
    const isText = typeof token === 'string' && token !== ''
    if (!isText || token.length > TOKEN_CHARACTERS_MAX) throw authnError()
    const digest = await tokenDigest(token)
    const issued = await this.findIssued(token, digest)
    if (issued !== undefined) {
      const { value, version } = issued
      if (isExpired(value.expiresAt, this.#clock.now())) throw authnError()
      return new TokenPermit({
        grant: grantOf(value),
        digest,
        unchanged: unchanged('tokens', value.id, version),
      })
    }
    const root = await this.#session.get('settings', ROOT_TOKEN_KEY)
    if (root === undefined || !isSameDigest((root.value as unknown as RootTokenDocument).digest, digest)) {
      throw authnError()
    }
    return new TokenPermit({
      grant: OWNER,
      digest,
      unchanged: unchanged('settings', ROOT_TOKEN_KEY, root.version),
    })
  }

  /** Resolves to the document of an issued token, expired or not. */
  async findIssued(token: string, digest: string): Promise<Versioned<TokenDocument> | undefined> {
    const id = idOfToken(token)
    const document = id === undefined ? undefined : await this.#session.get('tokens', id)
    if (document === undefined) return undefined
    const value = document.value as unknown as TokenDocument
    return isSameDigest(value.digest, digest) ? { value, version: document.version } : undefined
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
