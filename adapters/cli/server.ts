import { TOKEN_CHARACTERS_MAX } from '../../src/engine/access/tokens.ts'
import { type Headwater, HeadwaterError } from '../../src/index.ts'
import { type ConnectOptions, connect } from '../client/index.ts'
import type { CliContext } from './context.ts'
import { CliError, printable, redact } from './errors.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8787'

export interface ServerTarget {
  readonly kind: 'server'
  /** The address without a trailing slash and without `/v1`. */
  readonly url: string
  /** Undefined sends none, for a server without authentication. */
  readonly token: string | undefined
  /** The option or the variable of the token. */
  readonly tokenSource: string | undefined
}

/** An option or a variable, and its value. */
type TokenSource = readonly [name: string, token: string | undefined]

/**
 * Returns a server with the first token that is given, and without one if none is.
 *
 * @throws CliError with exit code 2.
 */
export function serverWith(url: string, source: string, tokens: readonly TokenSource[]): ServerTarget {
  const [tokenSource, token] = tokens.find(([, value]) => value !== undefined) ?? []
  // Checked here because `Headers` would quote an invalid token in its error.
  if (token !== undefined && (!/^[!-~]+$/.test(token) || token.length > TOKEN_CHARACTERS_MAX)) {
    const limit = TOKEN_CHARACTERS_MAX.toLocaleString('en-US')
    throw new CliError(2, `${tokenSource} must be 1 to ${limit} visible ASCII characters without spaces`)
  }
  return { kind: 'server', url: serverUrl(url, source), token, tokenSource }
}

/** Errors do not quote the URL: it may contain a password. */
function serverUrl(text: string, name: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new CliError(2, `${name} must be an HTTP URL such as ${DEFAULT_URL}`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new CliError(2, `${name} must not contain a user name, a password, a query or a fragment`)
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`
}

export interface ServerOptions extends Pick<ConnectOptions, 'retries' | 'resumes' | 'signal'> {
  /** Receives a description of the failure before a request is repeated. */
  readonly onRetry?: ((failure: string) => void) | undefined
}

const UNREACHABLE = 'cannot reach the server'
/** How messages of the client about a server begin. */
const OF_CLIENT = /^(unexpected response from the server|no data from the server|the server responded with)\b/

/** A server as it is reached: fails at once where nothing listens, and describes errors. */
export class Server {
  /** Advice about the error that was described last. */
  hint: string | undefined
  readonly #target: ServerTarget
  readonly #context: CliContext
  #hasResponded = false

  constructor(target: ServerTarget, context: CliContext) {
    this.#target = target
    this.#context = context
  }

  /** Connects to it. By default a request is sent once. */
  connect({ onRetry, ...options }: ServerOptions): Promise<Headwater> {
    const { http2 = false, clock, env } = this.#context
    const { url, token } = this.#target
    return connect({
      url,
      token,
      // `s2` for the hosted service.
      headerPrefix: env.HEADWATER_HEADER_PREFIX === 's2' ? 's2' : 'svc',
      fetch: (request) => this.#fetch(request),
      http2,
      clock,
      defaultRetention: 'server',
      retries: 0,
      onRetry: onRetry && ((error) => onRetry(this.#textOf(error))),
      ...options,
    })
  }

  /** Sends a request. Rejects with an error that is not transient if nothing listens and nothing ever did. */
  async #fetch(request: Request): Promise<Response> {
    try {
      const response = await this.#context.fetch(request)
      this.#hasResponded = true
      return response
    } catch (cause) {
      const { code, reason } = connectionFailure(cause)
      if (this.#hasResponded || code !== 'ECONNREFUSED') throw cause
      throw new HeadwaterError('unsupported', `${UNREACHABLE}: ${reason}`, { mayHaveEffects: false, cause })
    }
  }

  /** Describes the error of the client that ends a command, in one line. */
  readonly describe = (error: HeadwaterError): string => {
    this.hint = this.#hintFor(error)
    return this.#textOf(error)
  }

  #hintFor({ code, cause }: HeadwaterError): string | undefined {
    const { url, tokenSource } = this.#target
    if (code === 'authn') {
      return tokenSource === undefined
        ? 'No access token was given; set HEADWATER_TOKEN, or use `headwater login`'
        : `The access token of ${tokenSource} is not valid`
    }
    const isRefused = cause !== undefined && connectionFailure(cause).code === 'ECONNREFUSED'
    if (!isRefused || url !== DEFAULT_URL) return undefined
    return 'Start a server with `headwater serve`, or open a directory with `--storage`'
  }

  /** The message names the server where that of the client does not. */
  #textOf({ code, message, mayHaveEffects, cause }: HeadwaterError): string {
    const doubt = mayHaveEffects ? '; the request may have taken effect' : ''
    if (message.startsWith(UNREACHABLE) && cause !== undefined) {
      const { code, reason } = connectionFailure(cause)
      const mayNeedTls = !this.#hasResponded && this.#target.url.startsWith('http:') && CLOSED.test(code)
      return `cannot reach ${this.#name}: ${reason}${doubt}${mayNeedTls ? USE_TLS : ''}`
    }
    if (!OF_CLIENT.test(message)) return `${printable(message)} (${code})${doubt}`
    // The client names the option, not the argument.
    const text = message.replace('the server', () => this.#name).replace('`url`', 'the URL')
    return `${printable(text)}${doubt}`
  }

  /** The URL for messages. A long path may be a token. */
  get #name(): string {
    const { origin, pathname } = new URL(this.#target.url)
    if (pathname === '/') return origin
    const path = pathname.slice(1)
    return `${origin}/${redact(path, path)}`
  }
}

/** How a connection without TLS ends at a server with TLS. The codes are those of Node. */
const CLOSED = /^(UND_ERR_SOCKET|ECONNRESET|EPIPE|HPE_\w+|HTTPParserError)$/
const USE_TLS = '; if the server uses TLS, try a URL that begins with https:'

/** How a connection with TLS fails at a server without it; the second code is that of newer versions. */
const NO_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/
const USE_HTTP = 'the server does not use TLS; try a URL that begins with http:'
/** How Node rejects a certificate of an unknown issuer. */
const UNTRUSTED =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT_LOCALLY|VERIFY_LEAF_SIGNATURE))$/

/** Returns the code of Node of a request that failed, or the name if it has none, and a description. */
function connectionFailure(error: unknown): { readonly code: string; readonly reason: string } {
  // Node's `fetch` has the reason in the cause, its HTTP/2 in the error.
  const { cause = error } = error as { cause?: unknown }
  const known = Object(cause) as Partial<Record<'code' | 'name' | 'message', unknown>>
  const code = String(known.code ?? known.name)
  const message = printable(String(known.message || (error as Error).message).trim())
  if (code === 'ECONNREFUSED') return { code, reason: 'connection refused' }
  if (NO_TLS.test(code)) return { code, reason: USE_HTTP }
  if (UNTRUSTED.test(code)) return { code, reason: `${message}; set NODE_EXTRA_CA_CERTS to trust it` }
  return { code, reason: message }
}
