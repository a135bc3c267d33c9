import { listLimit, pageOf } from '../../core/listing.ts'
import { exceeds, isEmptyScope, OWNER } from '../../core/permission.ts'
import { isExpired } from '../../core/retention.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
} from '../../model/access.ts'
import { utf8 } from '../../model/bytes.ts'
import { HeadwaterError, invalid, refuse } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import type { Document, JsonValue } from '../../storage/contract.ts'
import type { Versioned } from '../catalog.ts'
import type { EngineContext } from '../context.ts'
import { permissionDenied, storageError } from '../errors.ts'
import type { TokenService } from '../services.ts'
import { sameDigest, sha256 } from './digest.ts'
import {
  grantOf,
  ROOT_TOKEN_KEY,
  type RootTokenDocument,
  type TokenDocument,
  tokenInfo,
} from './documents.ts'
import { authnError } from './errors.ts'
import { type Identity, isUnchanged } from './identity.ts'
import type { OpenTokens } from './open-tokens.ts'
import { idOfToken, newRootToken, newToken, rootTokenProblem } from './token-text.ts'

/** The access tokens of an engine (wire-behaviour.md 9). */
export class Tokens implements TokenService {
  readonly #engine: EngineContext
  readonly #open: OpenTokens

  constructor(engine: EngineContext, open: OpenTokens) {
    this.#engine = engine
    this.#open = open
  }

  async issue(given: AccessTokenInput, issuer?: Identity): Promise<string> {
    const now = this.#engine.settings.clock.now()
    const input = newAccessToken(given, now)
    const { id, autoPrefixStreams, scope } = input
    if (isEmptyScope(scope)) throw invalid('Access token permissions cannot be empty', 'scope')
    const grant = issuer?.grant ?? OWNER
    const expiresAt = input.expiresAt ?? grant.expiresAt
    const excess = exceeds(grant, { scope, expiresAt })
    if (excess !== undefined) throw permissionDenied(`a token can't permit more than its issuer's: ${excess}`)
    const token = newToken(id)
    const digest = await sha256(utf8(token))
    const document: TokenDocument = { id, digest, expiresAt, autoPrefixStreams, scope }
    await this.#engine.catalog.change(`token\0${id}`, async (commit) => {
      // Nothing is issued by a token that was revoked meanwhile.
      if (issuer !== undefined && !(await isUnchanged(this.#engine.session, issuer))) throw authnError()
      const existing = await this.#document(id)
      // One that has expired is only still there to be listed.
      if (existing !== undefined && !isExpired(existing.value.expiresAt, now)) throw alreadyExists(id)
      const change = put('tokens', id, document, existing?.version ?? null)
      await commit(issuer === undefined ? [change] : [issuer.unchanged, change])
    })
    return token
  }

  async list(query: ListQuery): Promise<Page<AccessTokenInfo>> {
    const { prefix = '', startAfter = '' } = query
    refuse(accessTokenPrefixProblem(prefix, 'prefix'), 'prefix')
    refuse(accessTokenPrefixProblem(startAfter, 'start-after'), 'start_after')
    const limit = listLimit(query.limit)
    const range = { prefix, after: startAfter, limit: limit + 1 }
    const documents = await storageError(this.#engine.session.list('tokens', range))
    return pageOf(documents, limit, ({ value }) => tokenInfo(value as unknown as TokenDocument))
  }

  /** From when this resolves the token is refused; sessions that it opened end. */
  async revoke(id: string): Promise<void> {
    refuse(accessTokenIdProblem(id), 'id')
    await this.#engine.catalog.change(`token\0${id}`, async (commit) => {
      const existing = await this.#document(id)
      if (existing === undefined) {
        throw new HeadwaterError('access_token_not_found', `access token \`${id}\` not found`)
      }
      await commit([{ kind: 'delete', collection: 'tokens', key: id, expect: existing.version }])
    })
    this.#open.end(id)
  }

  /**
   * What the token permits. Rejects with 401 `authn`, for whatever reason alike: malformed, unknown, revoked, expired.
   *
   * @param digest SHA-256 of the token.
   */
  async identify(token: string, digest: string): Promise<Identity> {
    const issued = await this.#issued(token, digest)
    if (issued !== undefined) {
      const { value, version } = issued
      if (isExpired(value.expiresAt, this.#engine.settings.clock.now())) throw authnError()
      return { grant: grantOf(value), digest, unchanged: check('tokens', value.id, version) }
    }
    const root = await this.#get('settings', ROOT_TOKEN_KEY)
    if (root === undefined || !sameDigest((root.value as unknown as RootTokenDocument).digest, digest)) {
      throw authnError()
    }
    return { grant: OWNER, digest, unchanged: check('settings', ROOT_TOKEN_KEY, root.version) }
  }

  /** Makes this the root token, in place of another. 16 to 1,024 characters of visible ASCII, else 422 `invalid`. */
  async setRoot(token: string): Promise<void> {
    const problem = rootTokenProblem(token)
    if (problem !== undefined) throw invalid(problem, 'token')
    const digest = await sha256(utf8(token))
    // Revoking it would make its holder the root instead.
    if ((await this.#issued(token, digest)) !== undefined) {
      throw invalid('the root token must not be a token that was issued', 'token')
    }
    await this.#engine.catalog.change(ROOT_TOKEN_KEY, async (commit) => {
      const existing = await this.#get('settings', ROOT_TOKEN_KEY)
      if ((existing?.value as unknown as RootTokenDocument | undefined)?.digest === digest) return
      await commit([put('settings', ROOT_TOKEN_KEY, { digest }, existing?.version ?? null)])
    })
    this.#open.endRootsBut(digest)
  }

  /** Makes a root token when there is none, and resolves to it; undefined when there is one. */
  async createRoot(): Promise<string | undefined> {
    const token = newRootToken()
    const digest = await sha256(utf8(token))
    return this.#engine.catalog.change(ROOT_TOKEN_KEY, async (commit) => {
      if ((await this.#get('settings', ROOT_TOKEN_KEY)) !== undefined) return undefined
      await commit([put('settings', ROOT_TOKEN_KEY, { digest }, null)])
      return token
    })
  }

  /** The document of the token, if this is the very one that was issued. */
  async #issued(token: string, digest: string): Promise<Versioned<TokenDocument> | undefined> {
    const id = idOfToken(token)
    const document = id === undefined ? undefined : await this.#document(id)
    return document !== undefined && sameDigest(document.value.digest, digest) ? document : undefined
  }

  async #document(id: string): Promise<Versioned<TokenDocument> | undefined> {
    const document = await this.#get('tokens', id)
    return document && { value: document.value as unknown as TokenDocument, version: document.version }
  }

  #get(collection: 'tokens' | 'settings', key: string): Promise<Document | undefined> {
    return storageError(this.#engine.session.get(collection, key))
  }
}

function check(collection: 'tokens' | 'settings', key: string, expect: number): Identity['unchanged'] {
  return { kind: 'check', collection, key, expect }
}

function put(
  collection: 'tokens' | 'settings',
  key: string,
  value: TokenDocument | RootTokenDocument,
  expect: number | null,
) {
  return { kind: 'put', collection, key, value: value as unknown as JsonValue, expect } as const
}

function alreadyExists(id: string): HeadwaterError {
  return new HeadwaterError('resource_already_exists', `access token \`${id}\` already exists`)
}
