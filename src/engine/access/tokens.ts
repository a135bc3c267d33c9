import { exceeds, type Grant, isEmptyScope, OWNER } from '../../core/permission.ts'
import { isExpired } from '../../core/retention.ts'
import {
  type AccessTokenInfo,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  type NewAccessToken,
} from '../../model/access.ts'
import { assertValid, HeadwaterError, invalid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { getDocument, putDocument, type TokenDocument, type Versioned } from '../../storage/documents.ts'
import type { Catalog } from '../streams/catalog.ts'
import { permissionDenied } from '../streams/errors.ts'
import { type Identity, TokenPermit } from './permissions.ts'
import {
  idOfToken,
  isSameDigest,
  newRootToken,
  newToken,
  rootTokenProblem,
  TOKEN_CHARACTERS_MAX,
  tokenDigest,
} from './token-format.ts'
import {
  authnError,
  isUnchanged,
  type TokenWatch,
  TokenWatcher,
  type TokenWatcherContext,
} from './token-watch.ts'

/** How long a caller may act on one look-up of its token, in milliseconds. */
const LOOKUP_VALID_MS = 1_000
/** How many look-ups are kept. */
const LOOKUPS_MAX = 1_000

/** The outcome of the look-up of a token. */
export interface TokenLookup {
  readonly permit: TokenPermit
  /** The time at which the look-up began, in milliseconds. */
  readonly at: number
  /** How often this engine had changed tokens by then. */
  readonly revision: number
}

interface TokensContext extends Omit<TokenWatcherContext, 'mayEndUnseen'> {
  readonly catalog: Catalog
  /** Whether other engines may ever change tokens. */
  readonly shared: boolean
  /** Whether other engines may change tokens now. Never false again once it was true. */
  readonly isShared: () => boolean
}

/**
 * The access tokens of an engine (docs/protocol.md "Access tokens"): issues, revokes and lists them, looks up
 * what they permit, and watches those of open sessions. Only their digests are stored.
 */
export class Tokens {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #clock: Clock
  readonly #isShared: () => boolean
  readonly #watcher: TokenWatcher
  /** The last look-ups, by digest. One that is outdated is found by the version of its document. */
  readonly #lookups = new Map<string, TokenLookup>()
  /** How often this engine changed tokens. */
  #revision = 0
  /** Whether a change failed that may appear in the storage later. */
  #mayAppearLate = false

  constructor({ catalog, shared, isShared, ...context }: TokensContext) {
    this.#session = context.session
    this.#catalog = catalog
    this.#clock = context.clock
    this.#isShared = () => this.#mayAppearLate || isShared()
    this.#watcher = new TokenWatcher({ ...context, mayEndUnseen: () => this.#mayAppearLate || shared })
  }

  // Looking up

  /** Rejects with the same `authn` error for malformed, unknown, revoked and expired tokens. */
  async lookUp(token: string | undefined): Promise<TokenLookup> {
    const isText = typeof token === 'string' && token !== ''
    if (!isText || token.length > TOKEN_CHARACTERS_MAX) throw authnError()
    const at = this.#clock.now()
    const revision = this.#revision
    const digest = await tokenDigest(token)
    const known = this.#lookups.get(digest)
    const permit =
      known !== undefined && (await this.#stillHolds(known.permit))
        ? known.permit
        : new TokenPermit(await this.#identify(token, digest))
    if (isExpired(permit.identity.grant.expiresAt, this.#clock.now())) throw authnError()
    const lookup = { permit, at, revision }
    // Else it may have been revoked meanwhile.
    if (revision === this.#revision) this.#keep(digest, lookup)
    return lookup
  }

  /**
   * Whether a caller may act on a look-up: for a second, unless the token expires or this engine changes
   * tokens.
   */
  isCurrent({ permit, at, revision }: TokenLookup): boolean {
    const now = this.#clock.now()
    const isRecent = Math.abs(now - at) < LOOKUP_VALID_MS
    return isRecent && revision === this.#revision && !isExpired(permit.identity.grant.expiresAt, now)
  }

  /** Watches the token while a session is open. Rejects with `authn` if it changed since it was looked up. */
  watch(identity: Identity): Promise<TokenWatch> {
    return this.#watcher.watch(identity)
  }

  /** Other engines may have revoked it, and expired tokens are deleted without notice. */
  async #stillHolds({ identity }: TokenPermit): Promise<boolean> {
    const mayHaveEnded = this.#isShared() || identity.grant.expiresAt !== null
    return !mayHaveEnded || isUnchanged(this.#session, identity)
  }

  #keep(digest: string, lookup: TokenLookup): void {
    const isFull = this.#lookups.size >= LOOKUPS_MAX && !this.#lookups.has(digest)
    if (isFull) this.#lookups.delete(this.#lookups.keys().next().value!)
    this.#lookups.set(digest, lookup)
  }

  async #identify(token: string, digest: string): Promise<Identity> {
    const issued = await this.#findIssued(token, digest)
    if (issued !== undefined) {
      const { key, value, version } = issued
      return { grant: grantOf(value), digest, unchanged: unchanged('tokens', key, version) }
    }
    const root = await getDocument(this.#session, 'settings', 'root-token')
    if (root === undefined || !isSameDigest(root.value.digest, digest)) throw authnError()
    return { grant: OWNER, digest, unchanged: unchanged('settings', root.key, root.version) }
  }

  /** Resolves to the document of an issued token, expired or not. */
  async #findIssued(token: string, digest: string): Promise<Versioned<TokenDocument> | undefined> {
    const id = idOfToken(token)
    const document = id === undefined ? undefined : await getDocument(this.#session, 'tokens', id)
    return document && isSameDigest(document.value.digest, digest) ? document : undefined
  }

  // Storing

  /**
   * Resolves to the token, which is not stored and cannot be shown again. Without an issuer the owner issues
   * it.
   */
  async issue(input: NewAccessToken, issuer?: Identity): Promise<string> {
    const { id, expiresAtText, autoPrefixStreams, scope } = input
    const now = this.#clock.now()
    if (isExpired(input.expiresAt, now)) throw invalid('`expiresAt` must be in the future', 'expiresAt')
    if (isEmptyScope(scope)) throw invalid('Access token permissions cannot be empty', 'scope')
    const grant = issuer?.grant ?? OWNER
    const expiresAt = input.expiresAt ?? grant.expiresAt
    const excess = exceeds(grant, { scope, expiresAt })
    if (excess !== undefined) {
      throw permissionDenied(`a token cannot permit more than its issuer's token: ${excess}`)
    }
    const token = newToken(id)
    const document: TokenDocument = {
      id,
      digest: await tokenDigest(token),
      expiresAt,
      ...(expiresAtText !== undefined && { expiresAtText }),
      autoPrefixStreams,
      scope,
    }
    await this.#catalog.change(changeKey(id), async (commit) => {
      if (issuer !== undefined && !(await isUnchanged(this.#session, issuer))) throw authnError()
      const existing = await getDocument(this.#session, 'tokens', id)
      // An expired token is kept for listing only.
      if (existing !== undefined && !isExpired(existing.value.expiresAt, now)) {
        throw new HeadwaterError('resource_already_exists', `access token \`${id}\` already exists`)
      }
      const change = putDocument('tokens', id, document, existing?.version ?? null)
      await commit(issuer === undefined ? [change] : [issuer.unchanged, change])
    })
    return token
  }

  async list(query: ListQuery): Promise<Page<AccessTokenInfo>> {
    const { prefix = '', startAfter = '' } = query
    assertValid(accessTokenPrefixProblem(prefix, 'prefix'), 'prefix')
    assertValid(accessTokenPrefixProblem(startAfter, 'start-after'), 'startAfter')
    return this.#catalog.page('tokens', query, tokenInfo)
  }

  async revoke(id: string): Promise<void> {
    assertValid(accessTokenIdProblem(id), 'id')
    const revoking = this.#catalog.change(changeKey(id), async (commit) => {
      const existing = await this.#session.get('tokens', id)
      if (existing === undefined) {
        throw new HeadwaterError('access_token_not_found', `access token \`${id}\` not found`)
      }
      await commit([{ kind: 'delete', collection: 'tokens', key: id, expect: existing.version }])
    })
    await this.#changed(revoking)
    this.#watcher.onRevoked(id)
  }

  /** Rejects with `invalid` unless it is 16 to 1,024 visible ASCII characters. */
  async setRoot(token: string): Promise<void> {
    this.#watcher.onRootReplaced(await this.#changed(this.#storeRoot(token)))
  }

  /** Resolves to the digest. */
  async #storeRoot(token: string): Promise<string> {
    const problem = rootTokenProblem(token)
    if (problem !== undefined) throw invalid(problem, 'token')
    const digest = await tokenDigest(token)
    // Else revoking the issued token would turn its holder into the root.
    if ((await this.#findIssued(token, digest)) !== undefined) {
      throw invalid('the root token must not be a token that was issued', 'token')
    }
    await this.#catalog.change('root-token', async (commit) => {
      const existing = await getDocument(this.#session, 'settings', 'root-token')
      if (existing?.value.digest === digest) return
      await commit([putDocument('settings', 'root-token', { digest }, existing?.version ?? null)])
    })
    return digest
  }

  /** Resolves to a new root token, or to undefined when there is one already. */
  async createRoot(): Promise<string | undefined> {
    const token = newRootToken()
    const digest = await tokenDigest(token)
    return this.#catalog.change('root-token', async (commit) => {
      if ((await getDocument(this.#session, 'settings', 'root-token')) !== undefined) return undefined
      await commit([putDocument('settings', 'root-token', { digest }, null)])
      return token
    })
  }

  /** Looks tokens up again after a change, also after a failed one, which may have had an effect. */
  async #changed<Result>(change: Promise<Result>): Promise<Result> {
    try {
      return await change
    } catch (error) {
      this.#mayAppearLate ||= !HeadwaterError.is(error) || error.mayHaveEffects
      void this.#watcher.checkNow()
      throw error
    } finally {
      this.#revision++
      this.#lookups.clear()
    }
  }

  close(): void {
    this.#watcher.close()
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

function tokenInfo(document: TokenDocument): AccessTokenInfo {
  const { id, expiresAt, expiresAtText, autoPrefixStreams, scope } = document
  return {
    id,
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
    ...(expiresAtText !== undefined && { expiresAtText }),
    autoPrefixStreams,
    scope,
  }
}

function changeKey(id: string): string {
  return `token\0${id}`
}
