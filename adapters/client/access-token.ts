import { HeadwaterError } from '../../src/model/errors.ts'
import { type SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import { withEffects } from './errors.ts'
import { isToken, type Settings } from './options.ts'

/** The access token of a client: the option `token`, or what `getToken` returned last. */
export class AccessToken {
  readonly #settings: Settings
  readonly #closing: SharedSignal
  #asked: Promise<string> | undefined
  /** The token that the app returned last. */
  #last: string | undefined

  constructor(settings: Settings, closing: SharedSignal) {
    this.#settings = settings
    this.#closing = closing
  }

  /** Resolves to the token, undefined for none. Rejects if the app has none now. */
  async get(): Promise<string | undefined> {
    const { token, getToken } = this.#settings
    if (getToken === undefined) return token
    if (this.#asked === undefined) {
      const asked = this.#withinDeadline(getToken)
      this.#asked = asked
      asked.then(
        (token) => {
          this.#last = token
        },
        () => {
          if (this.#asked === asked) this.#asked = undefined
        },
      )
    }
    return this.#asked
  }

  /** Keeps a token that came too late for the request that asked for it, unless another was asked for. */
  #keep(late: string): void {
    if (this.#asked !== undefined) return
    this.#asked = Promise.resolve(late)
    this.#last = late
  }

  /**
   * Forgets the token, so that the next request gets another. Returns whether there may be another.
   *
   * @param rejected The token that the server has rejected: another request may have got another meanwhile.
   */
  renew(rejected = this.#last): boolean {
    if (rejected === this.#last) {
      this.#asked = undefined
      this.#last = undefined
    }
    return this.#settings.getToken !== undefined
  }

  /**
   * Resolves to the token of the app. Rejects with a retryable error if it cannot be had now, for example
   * without a network, when the client begins to close, and with an error of headwater that the app throws as
   * it is.
   */
  async #withinDeadline(getToken: () => string | Promise<string>): Promise<string> {
    const { clock, requestTimeoutMs } = this.#settings
    const given: Promise<unknown> = (async () => getToken())()
    let cancelTimer = () => {}
    const timeout = new Promise<never>((_, reject) => {
      cancelTimer = clock.schedule(requestTimeoutMs, () => {
        const keep = (late: unknown) => {
          if (isGivenToken(late)) this.#keep(late)
        }
        given.then(keep, () => {})
        reject(tokenError(`did not settle within ${requestTimeoutMs} ms`))
      })
    })
    // A request that waits for the app when the client begins to close has not been sent.
    const closing = this.#closing.aborted ? undefined : this.#closing
    try {
      const token = await unlessAborted(closing, Promise.race([given, timeout]))
      if (isGivenToken(token)) return token
      throw tokenError('must return a token of visible ASCII characters without `<>{}"`')
    } catch (error) {
      if (HeadwaterError.is(error)) throw withEffects(error, false)
      const { message = error } = Object(error) as { readonly message?: unknown }
      throw tokenError(`failed: ${String(message).slice(0, 500)}`, error)
    } finally {
      cancelTimer()
    }
  }
}

/** Whether the app has given a token: pages of gateways and bodies of errors are none. */
function isGivenToken(given: unknown): given is string {
  return isToken(given) && !/[<>{}"]/.test(given)
}

function tokenError(problem: string, cause?: unknown): HeadwaterError {
  return new HeadwaterError('unavailable', `\`getToken\` ${problem}`, { mayHaveEffects: false, cause })
}
