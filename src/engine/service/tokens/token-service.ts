import { exceeds, isEmptyScope, OWNER } from '../../../core/permission.ts'
import { isExpired } from '../../../core/retention.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
} from '../../../model/access.ts'
import { assertValid, HeadwaterError, invalid } from '../../../model/errors.ts'
import type { ListQuery, Page } from '../../../model/info.ts'
import type { Clock } from '../../../runtime/clock.ts'
import type { StorageSession } from '../../../storage/contract.ts'
import { getDocument, putDocument, type TokenDocument } from '../../../storage/documents.ts'
import { permissionDenied } from '../../streams/errors.ts'
import type { Catalog } from '../catalog.ts'
import type { Identity } from '../permit.ts'
import { isUnchanged } from '../token-access.ts'
import { type Authenticator, authnError } from './authenticator.ts'
import { newRootToken, newToken, rootTokenProblem, tokenDigest } from './token-format.ts'

/**
 * Issues, lists and revokes access tokens (docs/protocol.md "Access tokens"). Only digests of tokens are
 * stored.
 */
export class TokenService {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #authenticator: Authenticator
  readonly #clock: Clock

  constructor(session: StorageSession, catalog: Catalog, authenticator: Authenticator, clock: Clock) {
    this.#session = session
    this.#catalog = catalog
    this.#authenticator = authenticator
    this.#clock = clock
  }

  async issue(given: AccessTokenInput, issuer?: Identity): Promise<string> {
    const now = this.#clock.now()
    const input = newAccessToken(given, now)
    const { id, expiresAtText, autoPrefixStreams, scope } = input
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
    await this.#catalog.change(changeKey(id), async (commit) => {
      const existing = await this.#session.get('tokens', id)
      if (existing === undefined) {
        throw new HeadwaterError('access_token_not_found', `access token \`${id}\` not found`)
      }
      await commit([{ kind: 'delete', collection: 'tokens', key: id, expect: existing.version }])
    })
  }

  /**
   * Resolves to the digest of the new root token. Rejects with `invalid` unless it is 16 to 1,024 visible
   * ASCII characters.
   */
  async setRoot(token: string): Promise<string> {
    const problem = rootTokenProblem(token)
    if (problem !== undefined) throw invalid(problem, 'token')
    const digest = await tokenDigest(token)
    // Else revoking the issued token would turn its holder into the root.
    if ((await this.#authenticator.findIssued(token, digest)) !== undefined) {
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
