import { HeadwaterError } from '../../src/index.ts'
import { lossyTextOf } from '../../src/model/bytes.ts'
import type { ConnectOptions } from '../client/index.ts'
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
    return connectionFailure(cause, { url: this.#url, hasResponded: this.#hasResponded })
  }
}

const UNREACHABLE = 'cannot reach the server'
/** How messages of the client about a server begin. */
const OF_CLIENT = /^(unexpected response from the server|no data from the server|the server responded with)\b/

interface ConnectionFailure {
  readonly reason: string
  /** Whether nothing listens on the port. */
  readonly isRefused: boolean
  /** What may be wrong with the URL, beginning with a semicolon; empty if nothing suggests it. */
  readonly hint: string
}

const NO_TLS = 'the server does not use TLS; try a URL that begins with http:'

/** Errors before the first byte of a request, in words. The codes are those of Node. */
const NOT_SENT: Readonly<Record<string, string | undefined>> = {
  ECONNREFUSED: 'connection refused',
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  // The same response, as newer versions of OpenSSL describe it.
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
}

/** Node's error for a connection that ends during the TLS handshake. Its code has other causes, too. */
const HANDSHAKE_ENDED = /before secure TLS connection was established/

/** How a request in plain text fails at a server with TLS that closes the connection. */
const CONNECTION_CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
/** Node's error for a TLS alert in place of a response. Not all versions give it a code. */
const NOT_HTTP = 'HTTPParserError'

const USE_HTTP = '; if the server does not use TLS, try a URL that begins with http:'
const USE_HTTPS = '; if the server uses TLS, try a URL that begins with https:'

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * Returns the hint about a response, not from the API, that suggests that the server expects TLS: a redirect,
 * or the error page of a port for TLS. It is empty otherwise.
 */
async function schemeHint(url: string, response: Response): Promise<string> {
  if (!url.startsWith('http:')) return ''
  const { headers, status } = response
  const redirectsToTls = headers.get('location')?.startsWith('https:') ?? false
  const mayReject = status === 400 && !headers.get('content-type')?.includes('json')
  return redirectsToTls || (mayReject && /https/i.test(await startOf(response))) ? USE_HTTPS : ''
}

/** Reads the first chunk of a body that is not read otherwise. */
async function startOf({ body }: Response): Promise<string> {
  const reader = body?.getReader()
  const chunk = await reader?.read()
  void reader?.cancel().catch(() => {})
  return lossyTextOf(chunk?.value ?? new Uint8Array())
}

/**
 * Describes why a request failed.
 *
 * @param server The URL of the server, and whether it has responded to an earlier request.
 */
function connectionFailure(
  error: unknown,
  server: { readonly url: string; readonly hasResponded: boolean },
): ConnectionFailure {
  // Node's `fetch` has the reason in the cause, its HTTP/2 in the error.
  const { cause = error } = error as { cause?: unknown }
  const {
    name,
    code: sent,
    message: text,
  } = Object(cause) as Partial<Record<'name' | 'code' | 'message', unknown>>
  const code = String(sent)
  const message = printable(String(text || (error as Error).message).trim())
  const endedHandshake = HANDSHAKE_ENDED.test(message)
  const notSent = Object.hasOwn(NOT_SENT, code) ? NOT_SENT[code] : undefined
  const known = endedHandshake ? 'the connection was closed during the TLS handshake' : notSent
  const isUntrusted = UNTRUSTED.has(code)
  const isUnanswered = CONNECTION_CLOSED.has(code) || name === NOT_HTTP
  const mayNeedTls = server.url.startsWith('http:') && isUnanswered
  return {
    reason: known ?? (isUntrusted ? `${message}; set NODE_EXTRA_CA_CERTS to trust it` : message),
    isRefused: code === 'ECONNREFUSED',
    hint: server.hasResponded ? '' : endedHandshake ? USE_HTTP : mayNeedTls ? USE_HTTPS : '',
  }
}
