import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import type { Check } from '../../src/model/validation.ts'
import type { RequestExchange } from './exchange.ts'
import { type Reply, rejection } from './reply.ts'

/** The origins whose pages may call the handler, besides its own. */
export type AllowedOrigins = 'any' | readonly string[]

const PREFLIGHT_MAX_AGE_SECONDS = 86_400
const METHODS = 'GET, POST, PUT, PATCH, DELETE'

/** The rule of the option `cors`. */
export const assertCors: Check = (value, field) => {
  if (typeof value === 'boolean' || (Array.isArray(value) && value.every(isOrigin))) return
  throw invalid(`\`${field}\` must be true, false or an array of origins such as https://app.example`, field)
}

/** Whether a text is an origin as browsers send it. */
export function isOrigin(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && new URL(text).origin === text && text !== 'null'
}

/** Whether pages of the origin of a request may call the handler. Requests without one are not from pages. */
function isAllowed(exchange: RequestExchange, allowed: AllowedOrigins): boolean {
  const origin = exchange.header('origin')
  return allowed === 'any' || (origin !== undefined && allowed.includes(origin))
}

/**
 * Throws `permission_denied` for a request of a page that may not call a handler without authentication.
 * Leaving out the CORS headers would not be enough: a browser sends simple requests without asking, and only
 * hides the responses.
 */
export function assertAllowedOrigin(exchange: RequestExchange, allowed: AllowedOrigins): void {
  // Browsers send this header to HTTPS and localhost origins, and pages cannot change it.
  const site = exchange.header('sec-fetch-site')
  const origin = exchange.header('origin')
  if (site === undefined ? origin === undefined : site === 'same-origin' || site === 'none') return
  if (isAllowed(exchange, allowed) || (site === undefined && isOwn(origin!, exchange))) return
  throw new HeadwaterError(
    'permission_denied',
    'without authentication, only pages of the same origin may call this server; ' +
      'allow others with the option `cors`, or `--allow-origin` of `headwater serve`',
  )
}

/** Whether an origin is that of the host that a request addresses. */
function isOwn(origin: string, exchange: RequestExchange): boolean {
  if (!URL.canParse(origin)) return false
  const { host, protocol } = new URL(origin)
  const own = `${protocol}//${exchange.host}`
  return URL.canParse(own) && new URL(own).host === host
}

/** Returns the CORS headers of a response. */
export function corsHeaders(
  exchange: RequestExchange,
  allowed: AllowedOrigins,
  exposedHeaders: string,
): Record<string, string> {
  if (!isAllowed(exchange, allowed)) return { vary: 'origin' }
  const origin = exchange.header('origin')
  const headers = {
    'access-control-allow-origin': origin ?? '*',
    // For requests with credentials, `*` would mean a header of that name.
    'access-control-expose-headers': exposedHeaders,
    vary: 'origin',
  }
  return origin === undefined ? headers : { ...headers, 'access-control-allow-credentials': 'true' }
}

/** Replies to a CORS preflight of an allowed origin: every requested method and header is allowed. */
export function preflightReply(exchange: RequestExchange, allowed: AllowedOrigins): Reply | undefined {
  if (!isAllowed(exchange, allowed)) return undefined
  const { 'access-control-expose-headers': _, ...common } = corsHeaders(exchange, allowed, '')
  const headers = {
    ...common,
    'access-control-allow-methods': exchange.header('access-control-request-method') ?? METHODS,
    'access-control-allow-headers': exchange.header('access-control-request-headers') ?? '*',
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SECONDS),
    vary: 'origin, access-control-request-method, access-control-request-headers',
  }
  return { status: 204, headers }
}

/** `Headers` joins the values of repeated headers. */
const TWO_HOSTS = rejection(400, 'bad_header', 'Invalid header `host`: the request has more than one')
/** The longest name that DNS has. */
const NAME_LENGTH_MAX = 253

/** The options that decide which hosts are served. */
interface HostRules {
  readonly auth: 'token' | 'none'
  readonly allowedHosts?: readonly string[] | undefined
  readonly basinDomains: readonly string[]
}

/** Returns the name in a `host` header: in lower case, without the port and a final dot. */
export function hostNameOf(host: string): string {
  return host.toLowerCase().replace(/\.?(:\d*)?$/, '')
}

/**
 * Returns the rejection of a request with several hosts, or to a host that is neither local nor allowed.
 * Without authentication, a web page could otherwise use a server on the machine of its visitor: it has the
 * name of its own host resolve to a loopback address (DNS rebinding), and counts as being of the same origin.
 */
export function hostRejection(
  exchange: RequestExchange,
  { auth, allowedHosts, basinDomains }: HostRules,
): Reply | undefined {
  if (exchange.host.includes(',')) return TWO_HOSTS
  const hosts = allowedHosts ?? (auth === 'none' && exchange.isLoopback ? [] : undefined)
  if (hosts === undefined) return undefined
  const name = hostNameOf(exchange.host)
  // An address is not resolved, and browsers resolve localhost themselves.
  if (/^(\[.*\]|[\d.]+)$/.test(name) || hosts.includes(name)) return undefined
  if (['localhost', ...basinDomains].some((domain) => `.${name}`.endsWith(`.${domain}`))) return undefined
  return rejection(
    421,
    'misdirected_request',
    `this server does not serve the host \`${name.slice(0, NAME_LENGTH_MAX)}\`; ` +
      'allow it with the option `allowedHosts`, or `--allowed-host` of `headwater serve`',
  )
}
