import { HeadwaterError } from '../../src/index.ts'
import type { ConnectOptions } from '../client/index.ts'
import { describedFailure, schemeHint } from './connection-failure.ts'
import { printable, redact } from './errors.ts'

type Fetch = NonNullable<ConnectOptions['fetch']>

/** A server as it is reached: fails at once where the URL seems to be wrong, and describes errors. */
export class Server {
  /** Whether nothing listens on the port. */
  isRefused = false
  readonly #url: string
  readonly #fetch: Fetch
  #hasResponded = false

  /** @param url Without a trailing slash and without `/v1`. */
  constructor(url: string, fetch: Fetch) {
    this.#url = url
    this.#fetch = fetch
  }

  /** Sends a request. Rejects with an error that is not transient if the first one fails for good. */
  readonly fetch: Fetch = async (request) => {
    let response: Response
    try {
      response = await this.#fetch(request)
    } catch (cause) {
      const { isRefused, reason } = this.#failure(cause)
      if (this.#hasResponded || !isRefused) throw cause
      throw new HeadwaterError('unsupported', `${UNREACHABLE}: ${reason}`, { mayHaveEffects: false, cause })
    }
    const hint = this.#hasResponded ? '' : await schemeHint(this.#url, response)
    if (hint !== '') {
      const problem = `unexpected response from the server: its status is ${response.status}${hint}`
      throw new HeadwaterError('unsupported', problem, { mayHaveEffects: false })
    }
    this.#hasResponded = true
    return response
  }

  /** Describes an error of the client in one line. It names the server where the client does not. */
  readonly describe = ({ code, message, mayHaveEffects, cause }: HeadwaterError): string => {
    const doubt = mayHaveEffects ? '; the request may have taken effect' : ''
    if (message.startsWith(UNREACHABLE) && cause !== undefined) {
      const { reason, isRefused, hint } = this.#failure(cause)
      this.isRefused = isRefused
      return `cannot reach ${this.#name}: ${reason}${doubt}${hint}`
    }
    if (!OF_CLIENT.test(message)) return `${printable(message)} (${code})${doubt}`
    // The client names the option, not the argument.
    const text = message.replace('the server', () => this.#name).replace('`url`', 'the URL')
    return `${printable(text)}${doubt}`
  }

  /** The URL for messages. A long path may be a token. */
  get #name(): string {
    const { origin, pathname } = new URL(this.#url)
    if (pathname === '/') return origin
    const path = pathname.slice(1)
    return `${origin}/${redact(path, path)}`
  }

  #failure(cause: unknown) {
    return describedFailure(cause, { url: this.#url, hasResponded: this.#hasResponded })
  }
}

const UNREACHABLE = 'cannot reach the server'
/** How messages of the client about a server begin. */
const OF_CLIENT = /^(unexpected response from the server|no data from the server|the server responded with)\b/
