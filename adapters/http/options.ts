import { assertRetention, type RetentionPolicy } from '../../src/model/config.ts'
import { invalid } from '../../src/model/errors.ts'
import { MIB } from '../../src/model/limits.ts'
import { basinNameProblem } from '../../src/model/names.ts'
import {
  assertMembers,
  assertOptions,
  assertText,
  type Check,
  listOf,
  type Members,
  type MembersOf,
  oneOf,
} from '../../src/model/validation.ts'
import { RejectingQuota } from '../../src/runtime/quotas.ts'
import { REQUEST_BODY_BYTES_MAX } from '../../src/wire/compression.ts'
import {
  APPEND_HEADER,
  HEADER_PREFIXES,
  STATUS_HEADER,
  STREAM_ID_HEADER,
  vendorHeaderName,
} from '../../src/wire/headers.ts'
import type { RequestExchange } from './exchange.ts'
import { type AllowedOrigins, assertCors, hostNameOf } from './origins.ts'
import { SessionDrain } from './session-drain.ts'

/** Options of a handler. */
export interface HandlerOptions {
  /**
   * `'token'` (the default) requires an access token with every request except `/health` and `/ping`.
   * `'none'` disables authentication: anyone who can reach the handler has full access.
   */
  readonly auth?: 'token' | 'none' | undefined
  /**
   * Returns the access token of a request, or undefined if it has none. By default the token is that of the
   * header `Authorization: Bearer`. Throw a `HeadwaterError` to reject the request with another status.
   */
  readonly getToken?:
    | ((exchange: RequestExchange) => string | undefined | Promise<string | undefined>)
    | undefined
  /**
   * Serves `/metrics` without a token; it contains counts and no names. Default false: it requires the
   * operation `account-metrics`.
   */
  readonly publicMetrics?: boolean | undefined
  /**
   * The origins whose pages may call the handler, with credentials (CORS): `true` for any, or a list such as
   * `['https://app.example']`. Default true; false with `auth: 'none'`, where the requests of other origins
   * are rejected with 403, and with `getToken`: if the token is a cookie, any page could act on behalf of its
   * visitors.
   */
  readonly cors?: boolean | readonly string[] | undefined
  /**
   * Compresses responses above 1 KiB if `Accept-Encoding` allows it. Default true. Disable it where something
   * in front of the handler compresses responses. Does not apply to binary sessions, which compress each
   * message.
   */
  readonly compression?: boolean | undefined
  /**
   * Names of hosts besides localhost, the basin domains and IP addresses: requests to any other host are
   * rejected with 421. By default none on a loopback address without authentication, where a web page could
   * otherwise use the server by DNS rebinding, if the runtime exposes the address, as Node does; any host
   * elsewhere.
   */
  readonly allowedHosts?: readonly string[] | undefined
  /** Requests to `{basin}.{domain}` address that basin, on any port. Default `['localhost']`. */
  readonly basinDomains?: readonly string[] | undefined
  /**
   * The basin of requests that name none, such as those of `EventSource`, which cannot set headers. By
   * default they are rejected.
   */
  readonly basin?: string | undefined
  /**
   * How long streams keep their records if neither the request that creates them nor their basin says:
   * `'infinite'` or `{ ageSeconds }`. Basins that are created without a default retention get it as theirs.
   * 604,800 seconds by default.
   */
  readonly retention?: RetentionPolicy | undefined
  /** Limits of requests. */
  readonly limits?: HandlerLimits | undefined
  /**
   * The path at which the handler is mounted, such as `/streams`. Removed from paths that begin with it;
   * others are used unchanged.
   */
  readonly prefix?: string | undefined
  /**
   * A page for people, served at `/` (after the prefix) without a token. None by default, so that an app
   * keeps its own.
   */
  readonly page?: HtmlPage | undefined
  /**
   * Receives every failure that clients see only as status 500, and other unexpected errors, on Node also the
   * reason for a response that was cut short. A lasting failure, such as the loss of the storage's directory,
   * is reported once. `console.error` by default.
   */
  readonly onError?: ((error: unknown, exchange: RequestExchange) => void) | undefined
}

/** Limits of a handler; requests beyond them are rejected. */
export interface HandlerLimits {
  /**
   * The longest body of a request, except append sessions, in bytes before and after decompression. Default
   * and maximum 2 MiB; 16 MiB for the Durable Streams protocol.
   */
  readonly bodyBytes?: number | undefined
  /**
   * Bytes of all incomplete request bodies and incomplete frames of append sessions. Beyond it requests fail
   * with 429 `rate_limited`. At least 2 MiB; default 256 MiB.
   */
  readonly pendingBodyBytes?: number | undefined
}

/** A web page, for people who open the address of a handler in a browser. */
export interface HtmlPage {
  /** A complete document. Everyone can read it, so it must not contain a secret. */
  readonly html: string
  /** The value of the header `content-security-policy`, which limits what the page may load and run. */
  readonly contentSecurityPolicy: string
  /** The scripts beside the page by their names, such as `app.js`, each loaded for its first request. */
  readonly scripts?: Readonly<Record<string, () => Promise<string>>> | undefined
}

/** The members of {@link HandlerLimits}. */
export const HANDLER_LIMITS: MembersOf<HandlerLimits> = { bodyBytes: 'number', pendingBodyBytes: 'number' }

const assertScripts: Check = (value, field) => {
  const rules = Object.fromEntries(Object.keys(Object(value)).map((name) => [name, 'function' as const]))
  assertMembers(value, rules, field, `${field}.`)
}

/** Throws unless the value is an {@link HtmlPage}. */
const assertPage: Check = (value, field) => {
  const members: MembersOf<HtmlPage> = {
    html: 'string',
    contentSecurityPolicy: 'string',
    scripts: assertScripts,
  }
  assertMembers(value, members, field, `${field}.`)
  const { html, contentSecurityPolicy } = value as HtmlPage
  assertText(html, `${field}.html`)
  assertText(contentSecurityPolicy, `${field}.contentSecurityPolicy`)
}

/** The options that all protocols have. */
export const COMMON_OPTIONS = {
  auth: oneOf(['token', 'none']),
  getToken: 'function',
  cors: assertCors,
  compression: 'boolean',
  allowedHosts: listOf(assertText),
  retention: assertRetention,
  limits: HANDLER_LIMITS,
  prefix: 'string',
  onError: 'function',
} satisfies Members

/** The members of {@link HandlerOptions}. */
export const HANDLER_OPTIONS: MembersOf<HandlerOptions> = {
  ...COMMON_OPTIONS,
  publicMetrics: 'boolean',
  basinDomains: listOf(assertText),
  basin: 'string',
  page: assertPage,
}

type Defaulted = 'auth' | 'getToken' | 'publicMetrics' | 'compression' | 'basinDomains' | 'prefix' | 'onError'

type WithDefaults = { readonly [Name in Defaulted]: NonNullable<HandlerOptions[Name]> }

/** The options with all defaults. The prefix has no trailing slash. */
export interface HandlerSettings
  extends WithDefaults,
    Pick<HandlerOptions, 'allowedHosts' | 'basin' | 'retention' | 'page'> {
  readonly limits: Readonly<Record<keyof HandlerLimits, number>>
  readonly allowedOrigins: AllowedOrigins
  /** The connection of requests whose runtime does not expose it. */
  readonly connection: object
  /** The response headers that pages of other origins may read, as a list. */
  readonly exposedHeaders: string
  /** Headers of every response. */
  readonly commonHeaders?: Readonly<Record<string, string>> | undefined
  readonly pendingBodies: RejectingQuota
  readonly drain: SessionDrain
}

/** Returns the token in the header `Authorization: Bearer`. */
export function bearerToken(exchange: RequestExchange): string | undefined {
  return /^bearer +([!-~]+) *$/i.exec(exchange.header('authorization') ?? '')?.[1]
}

/** Returns the prefix as it appears in the path of a URL. */
function encodedPath(prefix: string): string {
  return new URL(prefix.startsWith('/') ? prefix : `/${prefix}`, 'http://localhost').pathname
}

/**
 * Throws `invalid` for invalid options.
 *
 * @param bodyBytesMax The default and maximum of `limits.bodyBytes`.
 */
export function handlerSettings(
  options: HandlerOptions,
  members: Members = HANDLER_OPTIONS,
  bodyBytesMax = REQUEST_BODY_BYTES_MAX,
): HandlerSettings {
  assertOptions(options, members)
  const { auth = 'token', basinDomains = ['localhost'] } = options
  const cors = options.cors ?? (auth === 'token' && options.getToken === undefined)
  const basinProblem = options.basin === undefined ? undefined : basinNameProblem(options.basin)
  if (basinProblem !== undefined) throw invalid(basinProblem, 'basin')
  const { bodyBytes = bodyBytesMax, pendingBodyBytes = 256 * MIB } = options.limits ?? {}
  assertRange(bodyBytes, 'limits.bodyBytes', 0, bodyBytesMax)
  assertRange(pendingBodyBytes, 'limits.pendingBodyBytes', REQUEST_BODY_BYTES_MAX)
  const provisionResults = HEADER_PREFIXES.map((prefix) => vendorHeaderName(prefix, 'provision-result'))
  const onError = options.onError ?? logError
  const reported = new WeakSet<object>()
  const prefix = (options.prefix ?? '').replace(/\/+$/, '')
  return {
    auth,
    getToken: options.getToken ?? bearerToken,
    publicMetrics: options.publicMetrics ?? false,
    connection: {},
    allowedOrigins: cors === true ? 'any' : cors || [],
    compression: options.compression ?? true,
    exposedHeaders: [
      ...provisionResults,
      APPEND_HEADER,
      STREAM_ID_HEADER,
      STATUS_HEADER,
      'retry-after',
      'retry-after-ms',
      'allow',
    ].join(', '),
    allowedHosts: options.allowedHosts?.map(hostNameOf),
    basinDomains: basinDomains.map((domain) => domain.toLowerCase()),
    basin: options.basin,
    retention: options.retention,
    limits: { bodyBytes, pendingBodyBytes },
    drain: new SessionDrain(),
    pendingBodies: new RejectingQuota('limits.pendingBodyBytes', pendingBodyBytes),
    prefix: prefix === '' ? '' : encodedPath(prefix),
    page: options.page,
    onError: (error, exchange) => {
      // A storage that has failed permanently rejects every call with the same error.
      const reason = rootCauseOf(error)
      if (reported.has(reason)) return
      reported.add(reason)
      try {
        onError(error, exchange)
      } catch {
        // A failing logger must not fail the request as well.
      }
    },
  }
}

/** Causes may be circular. */
const CAUSES_MAX = 10

function rootCauseOf(error: unknown): object {
  let reason: Error = Object(error)
  for (let depth = 0; depth < CAUSES_MAX && reason.cause instanceof Error; depth++) reason = reason.cause
  return reason
}

/** Logs nothing of the request, whose headers and query may contain secrets. */
function logError(error: unknown): void {
  console.error(error)
}

/** Throws `invalid` unless a number is in a range. */
export function assertRange(value: number, field: string, min: number, max = Number.POSITIVE_INFINITY): void {
  if (value >= min && value <= max) return
  const range = max === Number.POSITIVE_INFINITY ? `at least ${min}` : `from ${min} to ${max}`
  throw invalid(`${field} must be ${range}, not ${value}`, field)
}
