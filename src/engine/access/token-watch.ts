import { isExpired } from '../../core/retention.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { SharedSignal } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { Identity } from './permissions.ts'

/**
 * How often the tokens of open sessions are checked, in milliseconds. A token that ended must be noticed
 * within a second.
 */
const CHECK_MS = 500
/** The time after which a check that has not completed is repeated, in milliseconds. */
const CHECK_AGAIN_MS = 5_000

/** Ends what a token opened when the token ends. */
export interface TokenWatch {
  /** Aborts with `authn` when the token is revoked or expires. */
  readonly ended: SharedSignal
  /** Stops watching. */
  release(): void
}

interface Entry {
  readonly identity: Identity
  readonly ended: SharedSignal
  users: number
  /** The time at which the check in progress began. */
  checkingSince: number | undefined
  cancelExpiry: (() => void) | undefined
}

export interface TokenWatcherContext {
  readonly session: StorageSession
  /** Whether tokens may be revoked without a call of `onRevoked` or `onRootReplaced`. */
  readonly mayEndUnseen: () => boolean
  readonly clock: Clock
  readonly onBackgroundError: (error: unknown) => void
  readonly closing: SharedSignal
}

/**
 * Watches the tokens of open sessions, so that the sessions end with their token (docs/protocol.md
 * "Authentication").
 */
export class TokenWatcher {
  readonly #context: TokenWatcherContext
  /** The entries by digest. */
  readonly #entries = new Map<string, Entry>()
  #cancelCheck: (() => void) | undefined

  constructor(context: TokenWatcherContext) {
    this.#context = context
  }

  /** Rejects with `authn` when the token changed since it was looked up. */
  async watch(identity: Identity): Promise<TokenWatch> {
    const entry = this.#entries.get(identity.digest) ?? this.#add(identity)
    entry.users++
    let isWatching = true
    const release = () => {
      if (!isWatching) return
      isWatching = false
      entry.users--
      if (entry.users === 0) this.#remove(entry)
    }
    try {
      // Changes from now on are noticed; earlier ones are looked up.
      if (!(await this.#isValid(entry))) throw authnError()
    } catch (error) {
      release()
      throw error
    }
    return { ended: entry.ended, release }
  }

  /** This engine revoked the token with this id. */
  onRevoked(tokenId: string): void {
    this.#endWhere(({ grant }) => grant.tokenId === tokenId)
  }

  /** This engine replaced the root token. */
  onRootReplaced(digest: string): void {
    this.#endWhere((identity) => identity.grant.tokenId === null && identity.digest !== digest)
  }

  /** Ends sessions whose token no longer exists. Never rejects. */
  checkNow(): Promise<void> {
    this.#scheduleCheck()
    return this.#check(true)
  }

  close(): void {
    this.#cancelCheck?.()
    for (const entry of [...this.#entries.values()]) this.#remove(entry)
  }

  #add(identity: Identity): Entry {
    const entry: Entry = {
      identity,
      ended: new SharedSignal(),
      users: 0,
      checkingSince: undefined,
      cancelExpiry: undefined,
    }
    this.#entries.set(identity.digest, entry)
    this.#scheduleExpiry(entry)
    this.#scheduleCheck()
    return entry
  }

  #remove(entry: Entry): void {
    entry.cancelExpiry?.()
    if (this.#isWatched(entry)) this.#entries.delete(entry.identity.digest)
    if (this.#entries.size > 0) return
    this.#cancelCheck?.()
    this.#cancelCheck = undefined
  }

  #isWatched(entry: Entry): boolean {
    return this.#entries.get(entry.identity.digest) === entry
  }

  #endWhere(matches: (identity: Identity) => boolean): void {
    for (const entry of [...this.#entries.values()]) if (matches(entry.identity)) this.#end(entry)
  }

  #end(entry: Entry): void {
    this.#remove(entry)
    entry.ended.abort(tokenEndedError())
  }

  /**
   * Ends the token exactly when it expires. If the clock is set, or the machine sleeps, the regular checks
   * notice it.
   */
  #scheduleExpiry(entry: Entry): void {
    const { expiresAt } = entry.identity.grant
    if (expiresAt === null) return
    const { clock } = this.#context
    const expire = () => {
      if (this.#hasExpired(entry)) this.#end(entry)
      else this.#scheduleExpiry(entry)
    }
    entry.cancelExpiry = clock.schedule(expiresAt - clock.now(), expire, { background: true })
  }

  #hasExpired({ identity }: Entry): boolean {
    return isExpired(identity.grant.expiresAt, this.#context.clock.now())
  }

  #scheduleCheck(): void {
    const { clock, mayEndUnseen, closing } = this.#context
    if (this.#cancelCheck !== undefined || this.#entries.size === 0) return
    const mayExpire = [...this.#entries.values()].some(({ identity }) => identity.grant.expiresAt !== null)
    // Else this engine knows of every way in which one of them ends.
    if (!mayExpire && !mayEndUnseen()) return
    const check = () => {
      this.#cancelCheck = undefined
      void this.#check()
      if (!closing.aborted) this.#scheduleCheck()
    }
    this.#cancelCheck = clock.schedule(CHECK_MS, check, { background: true })
  }

  /** Checks all tokens at once, so that a slow check does not delay the others. */
  async #check(isNeeded: boolean = this.#context.mayEndUnseen()): Promise<void> {
    const { clock, onBackgroundError, closing } = this.#context
    const now = clock.now()
    const entries = [...this.#entries.values()]
    for (const entry of entries) if (this.#hasExpired(entry)) this.#end(entry)
    if (!isNeeded) return
    const due = entries.filter(
      ({ checkingSince }) => checkingSince === undefined || now - checkingSince >= CHECK_AGAIN_MS,
    )
    let failure: { readonly error: unknown } | undefined
    const checkOne = async (entry: Entry) => {
      entry.checkingSince = now
      try {
        if (!(await this.#isValid(entry)) && this.#isWatched(entry)) this.#end(entry)
      } catch (error) {
        failure ??= { error }
      } finally {
        if (entry.checkingSince === now) entry.checkingSince = undefined
      }
    }
    await Promise.all(due.map(checkOne))
    // One report for all of them; the next check tries again.
    if (failure !== undefined && !closing.aborted) onBackgroundError(failure.error)
  }

  async #isValid(entry: Entry): Promise<boolean> {
    return (await isUnchanged(this.#context.session, entry.identity)) && !this.#hasExpired(entry)
  }
}

/** Whether the token is still as it was when it was looked up. */
export async function isUnchanged(session: StorageSession, { unchanged }: Identity): Promise<boolean> {
  const document = await session.get(unchanged.collection, unchanged.key)
  return document?.version === unchanged.expect
}

/** The message is the same for malformed, unknown, revoked and expired tokens. */
export function authnError(): HeadwaterError {
  return new HeadwaterError('authn', 'a valid access token is required')
}

function tokenEndedError(): HeadwaterError {
  return new HeadwaterError('authn', 'the access token was revoked or has expired')
}
