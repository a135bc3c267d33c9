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
    return this.#last ?? this.#withinDeadline(this.#asked ?? this.#ask(getToken))
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

  /** Asks the app. A token that comes too late for its request is kept, unless another was asked for. */
  #ask(getToken: () => string | Promise<string>): Promise<string> {
    const asked = givenToken(getToken)
    this.#asked = asked
    asked.then(
      (token) => {
        this.#asked ??= asked
        if (this.#asked === asked) this.#last = token
      },
      () => this.#askAgain(asked),
    )
    return asked
  }

  #askAgain(asked: Promise<string>): void {
    if (this.#asked === asked) this.#asked = undefined
  }

  /** Rejects with a retryable error after a while, and when the client begins to close. */
  async #withinDeadline(asked: Promise<string>): Promise<string> {
    const { clock, requestTimeoutMs } = this.#settings
    let cancelTimer = () => {}
    const timeout = new Promise<never>((_, reject) => {
      cancelTimer = clock.schedule(requestTimeoutMs, () => {
        this.#askAgain(asked)
        reject(tokenError(`did not settle within ${requestTimeoutMs} ms`))
      })
    })
    // A request that waits for the app when the client begins to close has not been sent.
    const closing = this.#closing.aborted ? undefined : this.#closing
    return unlessAborted(closing, Promise.race([asked, timeout])).finally(() => cancelTimer())
  }
}

/**
 * Resolves to the token of the app. Rejects with a retryable error if it cannot be had now, for example
 * without a network, and with an error of headwater that the app throws as it is.
 */
async function givenToken(getToken: () => string | Promise<string>): Promise<string> {
  let token: unknown
  try {
    token = await getToken()
  } catch (error) {
    if (HeadwaterError.is(error)) throw withEffects(error, false)
    const { message = error } = Object(error) as { readonly message?: unknown }
    throw tokenError(`failed: ${String(message).slice(0, 500)}`, error)
  }
  // Pages of gateways and bodies of errors are no tokens.
  if (isToken(token) && !/[<>{}"]/.test(token)) return token
  throw tokenError('must return a token of visible ASCII characters without `<>{}"`')
}

function tokenError(problem: string, cause?: unknown): HeadwaterError {
  return new HeadwaterError('unavailable', `\`getToken\` ${problem}`, { mayHaveEffects: false, cause })
}
