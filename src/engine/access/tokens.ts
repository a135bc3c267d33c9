import { exceeds, type Grant, isEmptyScope, OWNER } from '../../core/permission.ts'
import {
  type AccessTokenInfo,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  type NewAccessToken,
} from '../../model/access.ts'
import { concatBytes, decodeBase64, encodeBase64, equalSecrets, textOf, utf8 } from '../../model/bytes.ts'
import { assertValid, HeadwaterError, invalid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import { ACCESS_TOKEN_ID_BYTES_MAX } from '../../model/limits.ts'
import { SharedSignal } from '../../runtime/abort.ts'
import { trackExternalWork } from '../../runtime/clock.ts'
import { nodeCrypto } from '../../runtime/node.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import { getDocument, putDocument, type TokenDocument, type Versioned } from '../../storage/documents.ts'
import type { EngineContext } from '../context.ts'
import { authnError, permissionDenied, tokenEndedError } from '../errors.ts'
import type { Catalog } from '../streams/catalog.ts'

/** How long a caller may act on one look-up of its token, in milliseconds. */
const LOOKUP_VALID_MS = 1_000
/** How often the tokens of open sessions are checked: the end of one must be noticed within a second. */
const CHECK_MS = 500
/** How often expired tokens are looked for, in milliseconds. */
const DELETE_EXPIRED_MS = 3_600_000
/** How long an expired token stays listed, in milliseconds. */
const EXPIRED_LISTED_MS = 86_400_000

/** The permissions of an access token at the time of its look-up. */
export interface Identity {
  readonly grant: Grant
  /** SHA-256 of the token, in hexadecimal. */
  readonly digest: string
  /** Holds while the token is neither revoked nor replaced. */
  readonly unchanged: Extract<CatalogChange, { readonly kind: 'check' }>
}

export interface TokenLookup {
  readonly identity: Identity
  /** The time at which the look-up began, in milliseconds. */
  readonly at: number
  /** How often this engine had changed tokens by then. */
  readonly revision: number
}

/** Ends what a token opened when the token ends. */
export interface TokenWatch {
  /** Aborts with `authn` when the token is revoked or expires. */
  readonly ended: SharedSignal
  /** Stops watching. A second call does nothing. */
  readonly release: () => void
}

/** A token of open sessions. */
interface WatchedToken {
  readonly identity: Identity
  readonly ended: SharedSignal
  sessions: number
  isChecking: boolean
}

export interface TokensContext extends EngineContext {
  readonly catalog: Catalog
}

/**
 * The access tokens of an engine (docs/protocol.md "Access tokens"): issues, revokes and lists them, looks up
 * what they permit, and watches those of open sessions, so that the sessions end with their token. Only their
 * digests are stored.
 */
export class Tokens {
  readonly #context: TokensContext
  /** The tokens of open sessions, by digest. */
  readonly #watched = new Map<string, WatchedToken>()
  #cancelCheck: (() => void) | undefined
  /** How often this engine changed tokens. */
  #revision = 0
  #expiredDeletedAt = Number.NEGATIVE_INFINITY

  constructor(context: TokensContext) {
    this.#context = context
  }

  // Storing

  /** Resolves to the token, which is not stored. Without an issuer the owner issues it. */
  async issue(input: NewAccessToken, issuer?: Identity): Promise<string> {
    const { session, catalog, clock } = this.#context
    const { id, expiresAtText, autoPrefixStreams, scope } = input
    const now = clock.now()
    if (hasPassed(input.expiresAt, now)) throw invalid('`expiresAt` must be in the future', 'expiresAt')
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
      digest: await digestOf(token),
      expiresAt,
      ...(expiresAtText !== undefined && { expiresAtText }),
      autoPrefixStreams,
      scope,
    }
    await catalog.change(changeKey(id), async (commit) => {
      if (issuer !== undefined && !(await this.#isUnchanged(issuer))) throw authnError()
      const existing = await getDocument(session, 'tokens', id)
      // An expired token is kept for listing only.
      if (existing !== undefined && !hasPassed(existing.value.expiresAt, now)) {
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
    return this.#context.catalog.page('tokens', query, tokenInfo)
  }

  async revoke(id: string): Promise<void> {
    const { session, catalog } = this.#context
    assertValid(accessTokenIdProblem(id), 'id')
    const revoking = catalog.change(changeKey(id), async (commit) => {
      const existing = await session.get('tokens', id)
      if (existing === undefined) {
        throw new HeadwaterError('access_token_not_found', `access token \`${id}\` not found`)
      }
      await commit([{ kind: 'delete', collection: 'tokens', key: id, expect: existing.version }])
    })
    await this.#changed(revoking)
    this.#endWhere(({ grant }) => grant.tokenId === id)
  }

  /** Rejects with `invalid` unless it is 16 to 1,024 visible ASCII characters. */
  async setRoot(token: string): Promise<void> {
    const digest = await this.#changed(this.#storeRoot(token))
    this.#endWhere((identity) => identity.grant.tokenId === null && identity.digest !== digest)
  }

  async #storeRoot(token: string): Promise<string> {
    const { session, catalog } = this.#context
    const problem = rootTokenProblem(token)
    if (problem !== undefined) throw invalid(problem, 'token')
    const digest = await digestOf(token)
    // Else revoking the issued token would turn its holder into the root.
    if ((await this.#findIssued(token, digest)) !== undefined) {
      throw invalid('the root token must not be a token that was issued', 'token')
    }
    await catalog.change('root-token', async (commit) => {
      const existing = await getDocument(session, 'settings', 'root-token')
      if (existing?.value.digest === digest) return
      await commit([putDocument('settings', 'root-token', { digest }, existing?.version ?? null)])
    })
    return digest
  }

  /** Resolves to a new root token, or to undefined when there is one already. */
  async createRoot(): Promise<string | undefined> {
    const { session, catalog } = this.#context
    const token = encodeBase64(randomSecret())
    const digest = await digestOf(token)
    return catalog.change('root-token', async (commit) => {
      if ((await getDocument(session, 'settings', 'root-token')) !== undefined) return undefined
      await commit([putDocument('settings', 'root-token', { digest }, null)])
      return token
    })
  }

  /** Has callers look their tokens up again after a change, also after a failed one: it may have happened. */
  async #changed<Result>(change: Promise<Result>): Promise<Result> {
    try {
      return await change
    } finally {
      this.#revision++
    }
  }

  /** Deletes tokens that expired more than a day ago, once an hour. `now` is the confirmed time. */
  async deleteExpired(now: number): Promise<void> {
    // The absolute difference, in case the clock was set back.
    if (Math.abs(now - this.#expiredDeletedAt) < DELETE_EXPIRED_MS) return
    const { session, catalog } = this.#context
    await catalog.forEach('tokens', '', async ({ key, value, version }) => {
      const { expiresAt } = value
      if (expiresAt === null || expiresAt + EXPIRED_LISTED_MS > now) return
      // A token that was revoked or replaced meanwhile stays as it is.
      await session.commit([{ kind: 'delete', collection: 'tokens', key, expect: version }])
    })
    this.#expiredDeletedAt = now
  }

  // Looking up

  /** Rejects with the same `authn` error for malformed, unknown, revoked and expired tokens. */
  async lookUp(token: string | undefined): Promise<TokenLookup> {
    const isText = typeof token === 'string' && token !== ''
    if (!isText || token.length > TOKEN_CHARACTERS_MAX) throw authnError()
    const at = this.#context.clock.now()
    const revision = this.#revision
    const identity = await this.#identify(token, await digestOf(token))
    if (this.#hasExpired(identity)) throw authnError()
    return { identity, at, revision }
  }

  /** Whether a look-up holds: for a second, unless the token expires or this engine changes tokens. */
  isCurrent({ identity, at, revision }: TokenLookup): boolean {
    const isRecent = Math.abs(this.#context.clock.now() - at) < LOOKUP_VALID_MS
    return isRecent && revision === this.#revision && !this.#hasExpired(identity)
  }

  async #identify(token: string, digest: string): Promise<Identity> {
    const issued = await this.#findIssued(token, digest)
    if (issued !== undefined) {
      const { key, value, version } = issued
      return { grant: grantOf(value), digest, unchanged: unchanged('tokens', key, version) }
    }
    const root = await getDocument(this.#context.session, 'settings', 'root-token')
    if (root === undefined || !isSameDigest(root.value.digest, digest)) throw authnError()
    return { grant: OWNER, digest, unchanged: unchanged('settings', root.key, root.version) }
  }

  /** Resolves to the document of an issued token, expired or not. */
  async #findIssued(token: string, digest: string): Promise<Versioned<TokenDocument> | undefined> {
    const id = idOfToken(token)
    const document = id === undefined ? undefined : await getDocument(this.#context.session, 'tokens', id)
    return document && isSameDigest(document.value.digest, digest) ? document : undefined
  }

  #hasExpired({ grant }: Identity): boolean {
    return hasPassed(grant.expiresAt, this.#context.clock.now())
  }

  /** Whether the token is still as it was when it was looked up. */
  async #isUnchanged({ unchanged }: Identity): Promise<boolean> {
    const document = await this.#context.session.get(unchanged.collection, unchanged.key)
    return document?.version === unchanged.expect
  }

  // Watching

  /** Watches the token while a session is open. Rejects with `authn` if it changed since it was looked up. */
  async watch(identity: Identity): Promise<TokenWatch> {
    const watched = this.#watched.get(identity.digest) ?? this.#add(identity)
    watched.sessions++
    let isWatching = true
    const release = () => {
      if (!isWatching) return
      isWatching = false
      watched.sessions--
      if (watched.sessions === 0) this.#remove(watched)
    }
    try {
      // Changes from now on are noticed; earlier ones are looked up.
      const isValid = (await this.#isUnchanged(watched.identity)) && !this.#hasExpired(identity)
      if (!isValid) throw authnError()
    } catch (error) {
      release()
      throw error
    }
    return { ended: watched.ended, release }
  }

  close(): void {
    for (const watched of [...this.#watched.values()]) this.#remove(watched)
  }

  #add(identity: Identity): WatchedToken {
    const watched = { identity, ended: new SharedSignal(), sessions: 0, isChecking: false }
    this.#watched.set(identity.digest, watched)
    this.#scheduleCheck()
    return watched
  }

  #remove(watched: WatchedToken): void {
    if (this.#isWatched(watched)) this.#watched.delete(watched.identity.digest)
    if (this.#watched.size > 0) return
    this.#cancelCheck?.()
    this.#cancelCheck = undefined
  }

  #isWatched(watched: WatchedToken): boolean {
    return this.#watched.get(watched.identity.digest) === watched
  }

  #endWhere(matches: (identity: Identity) => boolean): void {
    for (const watched of [...this.#watched.values()]) if (matches(watched.identity)) this.#end(watched)
  }

  #end(watched: WatchedToken): void {
    this.#remove(watched)
    watched.ended.abort(tokenEndedError())
  }

  #scheduleCheck(): void {
    const { clock, closing } = this.#context
    if (this.#cancelCheck !== undefined || this.#watched.size === 0 || closing.aborted) return
    const check = () => {
      this.#cancelCheck = undefined
      void this.#check()
      this.#scheduleCheck()
    }
    this.#cancelCheck = clock.schedule(CHECK_MS, check, { background: true })
  }

  /**
   * Ends the sessions of tokens that have expired or no longer exist. All are looked up at once, so that a
   * slow look-up does not delay the others. Never rejects.
   */
  async #check(): Promise<void> {
    const { onBackgroundError, closing } = this.#context
    this.#endWhere((identity) => this.#hasExpired(identity))
    const due = [...this.#watched.values()].filter(({ isChecking }) => !isChecking)
    const lookUps = due.map(async (watched) => {
      watched.isChecking = true
      try {
        const isLeft = await this.#isUnchanged(watched.identity)
        if (!isLeft && this.#isWatched(watched)) this.#end(watched)
      } finally {
        watched.isChecking = false
      }
    })
    const failed = (await Promise.allSettled(lookUps)).find(({ status }) => status === 'rejected')
    // One report for all of them; the next check tries again.
    if (failed?.status === 'rejected' && !closing.aborted) onBackgroundError(failed.reason)
  }
}

function hasPassed(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
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

// The text of a token

const SECRET_BYTES = 32
/** Longest token that is accepted, whether issued or a root token. */
export const TOKEN_CHARACTERS_MAX = 1024
export const ROOT_TOKEN_CHARACTERS_MIN = 16
const ISSUED_CHARACTERS_MAX = Math.ceil((SECRET_BYTES + ACCESS_TOKEN_ID_BYTES_MAX) / 3) * 4

/** Makes an issued token: 256 random bits and the id, which locates the document, so that no secret does. */
function newToken(id: string): string {
  return encodeBase64(concatBytes([randomSecret(), utf8(id)]))
}

/** Returns the id in an issued token, or undefined when the text cannot be one. */
export function idOfToken(token: string): string | undefined {
  if (token.length > ISSUED_CHARACTERS_MAX) return undefined
  const bytes = decodeBase64(token)
  const id = bytes && textOf(bytes.subarray(SECRET_BYTES))
  return id === undefined || accessTokenIdProblem(id) !== undefined ? undefined : id
}

/** Returns what is wrong with the text of a root token. */
export function rootTokenProblem(token: string): string | undefined {
  const isValid =
    typeof token === 'string' &&
    /^[!-~]*$/.test(token) &&
    token.length >= ROOT_TOKEN_CHARACTERS_MIN &&
    token.length <= TOKEN_CHARACTERS_MAX
  if (isValid) return undefined
  const range = `${ROOT_TOKEN_CHARACTERS_MIN} to ${TOKEN_CHARACTERS_MAX}`
  return `the root token must have ${range} characters, visible ASCII without spaces`
}

/**
 * Returns the SHA-256 of a token in hexadecimal: by `node:crypto` where the runtime has it, else by
 * WebCrypto. Rejects with `unsupported` on an insecure page, where browsers provide neither.
 */
async function digestOf(token: string): Promise<string> {
  const bytes = utf8(token)
  const node = nodeCrypto()
  if (node !== undefined) return node.createHash('sha256').update(bytes).digest('hex')
  const subtle = globalThis.crypto?.subtle
  if (subtle === undefined) {
    throw new HeadwaterError(
      'unsupported',
      'access tokens need WebCrypto, which insecure pages lack: use https',
    )
  }
  const digest = await trackExternalWork(subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function isSameDigest(one: string, other: string): boolean {
  return equalSecrets(utf8(one), utf8(other))
}

function randomSecret(): Uint8Array {
  return globalThis.crypto.getRandomValues(new Uint8Array(SECRET_BYTES))
}
