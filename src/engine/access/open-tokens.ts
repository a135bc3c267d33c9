import type { Grant } from '../../core/permission.ts'
import type { EngineContext } from '../context.ts'
import { storageError } from '../errors.ts'
import { ROOT_TOKEN_KEY } from './documents.ts'
import { authnError, tokenEndedError } from './errors.ts'

/** How often the tokens of open sessions are looked at when another engine may have revoked them, in milliseconds. */
const POLL_MS = 500

/** For as long as a session of a token's holder is open. */
export interface TokenWatch {
  /** Aborts with `authn` when the token is revoked or expires. */
  readonly ended: AbortSignal
  /** The session is over. */
  release(): void
}

interface Entry {
  readonly tokenId: string | null
  readonly digest: string
  readonly controller: AbortController
  readonly cancelExpiry: (() => void) | undefined
  users: number
}

/** The tokens by which sessions are open, so that these end with their token (rulings.md "Tokens": within a second). */
export class OpenTokens {
  readonly #engine: EngineContext
  /** By digest. */
  readonly #entries = new Map<string, Entry>()
  #cancelPoll: (() => void) | undefined

  constructor(engine: EngineContext) {
    this.#engine = engine
  }

  /** Rejects with `authn` when the token was revoked since it was looked at. */
  async follow({ tokenId, expiresAt }: Grant, digest: string): Promise<TokenWatch> {
    const entry = this.#entries.get(digest) ?? this.#add(tokenId, expiresAt, digest)
    entry.users++
    let following = true
    const release = () => {
      if (!following) return
      following = false
      entry.users--
      if (entry.users === 0) this.#remove(entry)
    }
    try {
      // From here on nothing is missed; what happened before is looked up.
      if (!(await this.#isValid(entry))) throw authnError()
    } catch (error) {
      release()
      throw error
    }
    return { ended: entry.controller.signal, release }
  }

  /** The token with this id was revoked. */
  end(tokenId: string): void {
    for (const entry of [...this.#entries.values()]) if (entry.tokenId === tokenId) this.#end(entry)
  }

  /** There is another root token. */
  endRootsBut(digest: string): void {
    for (const entry of [...this.#entries.values()]) {
      if (entry.tokenId === null && entry.digest !== digest) this.#end(entry)
    }
  }

  close(): void {
    this.#cancelPoll?.()
    for (const entry of [...this.#entries.values()]) this.#remove(entry)
  }

  #add(tokenId: string | null, expiresAt: number | null, digest: string): Entry {
    const { clock } = this.#engine.settings
    const cancelExpiry =
      expiresAt === null
        ? undefined
        : clock.schedule(expiresAt - clock.now(), () => this.#end(entry), { background: true })
    const entry: Entry = { tokenId, digest, controller: new AbortController(), cancelExpiry, users: 0 }
    this.#entries.set(digest, entry)
    this.#pollLater()
    return entry
  }

  #remove(entry: Entry): void {
    entry.cancelExpiry?.()
    if (this.#entries.get(entry.digest) === entry) this.#entries.delete(entry.digest)
    if (this.#entries.size > 0) return
    this.#cancelPoll?.()
    this.#cancelPoll = undefined
  }

  #end(entry: Entry): void {
    this.#remove(entry)
    entry.controller.abort(tokenEndedError())
  }

  #pollLater(): void {
    const { storage, clock } = this.#engine.settings
    if (!storage.manifest.shared || this.#cancelPoll !== undefined) return
    this.#cancelPoll = clock.schedule(
      POLL_MS,
      () => {
        this.#cancelPoll = undefined
        void this.#poll()
      },
      { background: true },
    )
  }

  async #poll(): Promise<void> {
    for (const entry of [...this.#entries.values()]) {
      try {
        if (!(await this.#isValid(entry))) this.#end(entry)
      } catch (error) {
        // Looked at again the next time.
        if (!this.#engine.closing.aborted) this.#engine.settings.onBackgroundError(error)
      }
    }
    if (this.#entries.size > 0 && !this.#engine.closing.aborted) this.#pollLater()
  }

  async #isValid({ tokenId, digest }: Entry): Promise<boolean> {
    const { session } = this.#engine
    const document =
      tokenId === null
        ? await storageError(session.get('settings', ROOT_TOKEN_KEY))
        : await storageError(session.get('tokens', tokenId))
    return (document?.value as { digest?: string } | undefined)?.digest === digest
  }
}
