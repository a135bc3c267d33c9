import { HeadwaterError } from '../../src/index.ts'
import { parseJson } from '../../src/wire/json.ts'
import { decoded, failureOf, connectionFailure as failureOfConnection } from '../client/errors.ts'
import type { ConnectOptions } from '../client/index.ts'
import { printable, redact } from './errors.ts'

type Fetch = NonNullable<ConnectOptions['fetch']>

const UNREACHABLE = 'cannot reach the server'
/** How messages of the client about a server begin. */
const OF_CLIENT = /^(unexpected response from the server|no data from the server|the server responded with)\b/

/** A server as it is reached: fails at once where nothing listens, and describes errors. */
export class Server {
  /** Whether nothing listens on the port. */
  isRefused = false
  readonly #url: string
  readonly #token: string | undefined
  readonly #fetch: Fetch
  #hasResponded = false

  /** @param url Without a trailing slash and without `/v1`. */
  constructor({ url, token }: { readonly url: string; readonly token: string | undefined }, fetch: Fetch) {
    this.#url = url
    this.#token = token
    this.#fetch = fetch
  }

  /** Sends a request. Rejects with an error that is not transient if nothing listens and nothing ever did. */
  readonly fetch: Fetch = async (request) => {
    try {
      const response = await this.#fetch(request)
      this.#hasResponded = true
      return response
    } catch (cause) {
      const { code, reason } = connectionFailure(cause)
      if (this.#hasResponded || code !== 'ECONNREFUSED') throw cause
      throw new HeadwaterError('unsupported', `${UNREACHABLE}: ${reason}`, { mayHaveEffects: false, cause })
    }
  }

  /** Sends a request for which the client has no method. Resolves to the JSON of the reply. */
  async request(path: string, signal: AbortSignal, body?: string): Promise<unknown> {
    const isSafe = body === undefined
    const headers = {
      ...(this.#token && { authorization: `Bearer ${this.#token}` }),
      'content-type': 'application/json',
    }
    const content = isSafe ? {} : { method: 'POST', body }
    try {
      // A redirect could send the token to another host.
      const request = new Request(`${this.#url}/v1${path}`, {
        headers,
        signal,
        redirect: 'manual',
        ...content,
      })
      const response = await this.#fetch(request)
      const text = await response.text()
      if (!response.ok) throw failureOf(response.status, text, isSafe)
      return decoded(!isSafe, () => parseJson(text))
    } catch (error) {
      throw failureOfConnection(error, isSafe).error
    }
  }

  /** Describes an error of the client in one line. It names the server where the client does not. */
  readonly describe = ({ code, message, mayHaveEffects, cause }: HeadwaterError): string => {
    const doubt = mayHaveEffects ? '; the request may have taken effect' : ''
    if (message.startsWith(UNREACHABLE) && cause !== undefined) {
      const { code, reason } = connectionFailure(cause)
      this.isRefused = code === 'ECONNREFUSED'
      const mayNeedTls = !this.#hasResponded && this.#url.startsWith('http:') && CLOSED.test(code)
      return `cannot reach ${this.#name}: ${reason}${doubt}${mayNeedTls ? USE_TLS : ''}`
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
}

const NO_TLS = 'the server does not use TLS; try a URL that begins with http:'
const TRUST = 'set NODE_EXTRA_CA_CERTS to trust it'

/** How a connection without TLS ends at a server with TLS. The codes are those of Node. */
const CLOSED = /^(UND_ERR_SOCKET|ECONNRESET|EPIPE|HPE_\w+|HTTPParserError)$/
const USE_TLS = '; if the server uses TLS, try a URL that begins with https:'

/** Errors of connections in words. */
const REASONS: Readonly<Record<string, (message: string) => string>> = {
  ECONNREFUSED: () => 'connection refused',
  ERR_SSL_WRONG_VERSION_NUMBER: () => NO_TLS,
  // The same response, as newer versions of OpenSSL describe it.
  ERR_SSL_PACKET_LENGTH_TOO_LONG: () => NO_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: (message) => `${message}; ${TRUST}`,
  SELF_SIGNED_CERT_IN_CHAIN: (message) => `${message}; ${TRUST}`,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: (message) => `${message}; ${TRUST}`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: (message) => `${message}; ${TRUST}`,
}

/** Returns the code of Node of a request that failed, or the name if it has none, and a description. */
function connectionFailure(error: unknown): { readonly code: string; readonly reason: string } {
  // Node's `fetch` has the reason in the cause, its HTTP/2 in the error.
  const { cause = error } = error as { cause?: unknown }
  const known = Object(cause) as Partial<Record<'code' | 'name' | 'message', unknown>>
  const code = String(known.code ?? known.name)
  const message = printable(String(known.message || (error as Error).message).trim())
  const reasonOf = Object.hasOwn(REASONS, code) ? REASONS[code] : undefined
  return { code, reason: reasonOf?.(message) ?? message }
}
