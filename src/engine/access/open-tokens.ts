import { isExpired } from '../../core/retention.ts'
import type { EngineContext } from '../context.ts'
import { authnError, tokenEndedError } from './errors.ts'
import { type Identity, isUnchanged } from './identity.ts'

/** How often the tokens of open sessions are looked at, in milliseconds: what they end by must be noticed within a second. */
const LOOK_MS = 500
/** After which a look that has not come back is given up and taken again, in milliseconds. */
const LOOK_AGAIN_MS = 5_000

/** For as long as a session of a token's holder is open. */
export interface TokenWatch {
  /** Aborts with `authn` when the token is revoked or expires. */
  readonly ended: AbortSignal
  /** The session is over. */
  release(): void
}

interface Entry {
  readonly identity: Identity
  readonly controller: AbortController
  users: number
  /** Begin of the look that is under way. */
  lookingSince: number | undefined
  cancelExpiry: (() => void) | undefined
}

/** The tokens by which sessions are open, so that these end with their token (rulings.md "Tokens": within a second). */
export class OpenTokens {
  readonly #engine: EngineContext
  /** By digest. */
  readonly #entries = new Map<string, Entry>()
  #cancelLook: (() => void) | undefined

  constructor(engine: EngineContext) {
    this.#engine = engine
  }

  /** Rejects with `authn` when the token was revoked since it was looked at. */
  async follow(identity: Identity): Promise<TokenWatch> {
    const entry = this.#entries.get(identity.digest) ?? this.#add(identity)
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
    this.#endThose(({ grant }) => grant.tokenId === tokenId)
  }

  /** There is another root token. */
  endRootsBut(digest: string): void {
    this.#endThose((identity) => identity.grant.tokenId === null && identity.digest !== digest)
  }

  close(): void {
    this.#cancelLook?.()
    for (const entry of [...this.#entries.values()]) this.#remove(entry)
  }

  #add(identity: Identity): Entry {
    const entry: Entry = {
      identity,
      controller: new AbortController(),
      users: 0,
      lookingSince: undefined,
      cancelExpiry: undefined,
    }
    this.#entries.set(identity.digest, entry)
    this.#armExpiry(entry)
    this.#lookLater()
    return entry
  }

  #remove(entry: Entry): void {
    entry.cancelExpiry?.()
    if (this.#isWatched(entry)) this.#entries.delete(entry.identity.digest)
    if (this.#entries.size > 0) return
    this.#cancelLook?.()
    this.#cancelLook = undefined
  }

  #isWatched(entry: Entry): boolean {
    return this.#entries.get(entry.identity.digest) === entry
  }

  #endThose(isMeant: (identity: Identity) => boolean): void {
    for (const entry of [...this.#entries.values()]) if (isMeant(entry.identity)) this.#end(entry)
  }

  #end(entry: Entry): void {
    this.#remove(entry)
    entry.controller.abort(tokenEndedError())
  }

  /** For the very moment. That the clock may be set, or the machine sleep, is left to the looks. */
  #armExpiry(entry: Entry): void {
    const { expiresAt } = entry.identity.grant
    if (expiresAt === null) return
    const { clock } = this.#engine.settings
    const expire = () => {
      if (this.#hasExpired(entry)) this.#end(entry)
      else this.#armExpiry(entry)
    }
    entry.cancelExpiry = clock.schedule(expiresAt - clock.now(), expire, { background: true })
  }

  #hasExpired({ identity }: Entry): boolean {
    return isExpired(identity.grant.expiresAt, this.#engine.settings.clock.now())
  }

  #lookLater(): void {
    const { clock, storage } = this.#engine.settings
    if (this.#cancelLook !== undefined || this.#entries.size === 0) return
    // Else nothing can end them without this engine's doing.
    const canEnd =
      storage.manifest.shared ||
      [...this.#entries.values()].some(({ identity }) => identity.grant.expiresAt !== null)
    if (!canEnd) return
    const look = () => {
      this.#cancelLook = undefined
      void this.#look()
      if (!this.#engine.closing.aborted) this.#lookLater()
    }
    this.#cancelLook = clock.schedule(LOOK_MS, look, { background: true })
  }

  /** Looks at all at once: one that takes long keeps no other from being looked at. */
  async #look(): Promise<void> {
    const { storage, clock, onBackgroundError } = this.#engine.settings
    const now = clock.now()
    const entries = [...this.#entries.values()]
    for (const entry of entries) if (this.#hasExpired(entry)) this.#end(entry)
    if (!storage.manifest.shared) return
    const due = entries.filter(
      ({ lookingSince }) => lookingSince === undefined || now - lookingSince >= LOOK_AGAIN_MS,
    )
    let failure: { readonly error: unknown } | undefined
    const lookAt = async (entry: Entry) => {
      entry.lookingSince = now
      try {
        if (!(await this.#isValid(entry)) && this.#isWatched(entry)) this.#end(entry)
      } catch (error) {
        failure ??= { error }
      } finally {
        if (entry.lookingSince === now) entry.lookingSince = undefined
      }
    }
    await Promise.all(due.map(lookAt))
    // Told once however many they are; looked at again the next time.
    if (failure !== undefined && !this.#engine.closing.aborted) onBackgroundError(failure.error)
  }

  async #isValid(entry: Entry): Promise<boolean> {
    return (await isUnchanged(this.#engine.session, entry.identity)) && !this.#hasExpired(entry)
  }
}
