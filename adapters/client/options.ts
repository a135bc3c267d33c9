import { type HeadwaterError, invalid } from '../../src/model/errors.ts'
import { MIB } from '../../src/model/limits.ts'
import { assertOptions, assertSignal, hasMethod, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { HEADER_PREFIXES, type HeaderPrefix } from '../../src/wire/headers.ts'

/** Limits of a client. Sizes are metered bytes. */
export interface ClientLimits {
  /**
   * Bytes of all appends that are not acknowledged. Further appends reject with `rate_limited`, without
   * effect. At least 1 MiB; 128 MiB by default.
   */
  readonly appendWaitingBytes: number
  /**
   * Bytes in flight of one append session. `submit` waits. At least 1 MiB; 3 MiB by default, which
   * is enough for 1 Gbit/s at a round trip of 20 ms.
   */
  readonly sessionInFlightBytes: number
}

/** Options of `connect`. */
export interface ConnectOptions {
  /**
   * The address of the server or service: `https://streams.example`, or with the path at which a handler is
   * mounted, `https://app.example/streams`. A final `/v1` makes no difference.
   */
  readonly url: string
  /** The access token, if the server requires one. */
  readonly token?: string | undefined
  /**
   * Returns the access token. It is called before the first request, and once for each request that the
   * server rejects with 401. If it throws an ordinary error, returns no token, or does not settle within
   * `requestTimeoutMs`, the call is repeated like one that cannot reach the server, and then rejects with
   * `unavailable`. A `HeadwaterError` that it throws reaches the caller: `authn` ends sync until a retry.
   */
  readonly getToken?: (() => string | Promise<string>) | undefined
  /**
   * Sends requests: a handler made by `createHandler`, or a `fetch` of your own. The runtime's by default,
   * and in Node HTTP/2 for sessions.
   */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
  /**
   * The prefix of protocol headers: `s2` for the hosted service. `svc` by default. With `s2`, read sessions in
   * pages are Server-Sent Events instead of frames.
   */
  readonly headerPrefix?: HeaderPrefix | undefined
  /**
   * Whether appends create a missing basin and stream, as in `open`. True by default. With a token that does
   * not permit it, they reject with `stream_not_found` or `basin_not_found`.
   */
  readonly autoCreate?: boolean | undefined
  /**
   * The retention of basins and streams that are created without one: `infinite`, as in `open`, or that of
   * the `server`. `infinite` by default.
   */
  readonly defaultRetention?: 'infinite' | 'server' | undefined
  /** The source of time; the system's by default. `headwater/testing` has a virtual clock. */
  readonly clock?: Clock | undefined
  /** Returns random numbers in [0, 1), for pauses between attempts. `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** Closes the client when it aborts. */
  readonly signal?: AbortSignal | undefined
  /**
   * How long a request may receive nothing before it fails, in milliseconds. 30,000 by default. A read that
   * waits has as much in addition. Read sessions always have 30,000, because servers send heartbeats.
   */
  readonly requestTimeoutMs?: number | undefined
  /** How often a request that is safe to repeat is sent again after a transient failure. 5 by default. */
  readonly retries?: number | undefined
  /**
   * Receives the failure before a request is sent again and before a read session is resumed, and how many
   * milliseconds later that happens.
   */
  readonly onRetry?: ((error: HeadwaterError, delayMs: number) => void) | undefined
  /**
   * How often a read session is resumed in succession without receiving anything, before it fails. 20 by
   * default, which takes about a minute; `Infinity` forever.
   */
  readonly resumes?: number | undefined
  /**
   * Whether sessions use HTTP/2 instead of `fetch`, in Node. True by default, except with a `fetch` of your
   * own.
   */
  readonly http2?: boolean | undefined
  /**
   * Whether request bodies above 8 KiB are compressed, in Node, Bun and Deno. True by default, except for
   * `localhost` and with a `fetch` of your own.
   */
  readonly compression?: boolean | undefined
  /** Bounds of what the client holds in memory. */
  readonly limits?: Partial<ClientLimits> | undefined
}

const CONNECT_OPTIONS: MembersOf<ConnectOptions> = {
  url: 'string',
  token: 'string',
  getToken: 'function',
  fetch: 'function',
  headerPrefix: oneOf(HEADER_PREFIXES),
  autoCreate: 'boolean',
  defaultRetention: oneOf(['infinite', 'server']),
  clock: hasMethod('now', 'a clock, such as `virtualClock()`'),
  random: 'function',
  signal: assertSignal,
  requestTimeoutMs: 'number',
  retries: 'number',
  onRetry: 'function',
  resumes: 'number',
  http2: 'boolean',
  compression: 'boolean',
  limits: { appendWaitingBytes: 'number', sessionInFlightBytes: 'number' },
}

/** Options that have no default, or one that is not their value. */
type WithoutDefault = 'token' | 'getToken' | 'signal' | 'defaultRetention' | 'limits'

type WithDefaults = {
  readonly [Name in Exclude<keyof ConnectOptions, WithoutDefault>]: NonNullable<ConnectOptions[Name]>
}

/** Options with defaults applied. */
export interface Settings extends WithDefaults, Pick<ConnectOptions, 'token' | 'getToken'> {
  /** Ends in `/v1`. */
  readonly url: string
  /** Whether the browser would report expected outcomes, such as a missing stream, as failed requests. */
  readonly isPage: boolean
  /** Whether read sessions are Server-Sent Events, which are never compressed, instead of frames. */
  readonly readsEvents: boolean
  /** Whether basins and streams that are created without a retention keep their records forever. */
  readonly keepsForever: boolean
  readonly limits: ClientLimits
}

/** Throws `invalid` for options that are not valid. Messages do not repeat URLs and tokens. */
export function settingsOf(options: ConnectOptions): Settings {
  assertOptions(options, CONNECT_OPTIONS)
  const { token, getToken, fetch, headerPrefix = 'svc', clock = systemClock, limits = {} } = options
  const { requestTimeoutMs = 30_000, retries = 5, resumes = 20 } = options
  const { appendWaitingBytes = 128 * MIB, sessionInFlightBytes = 3 * MIB } = limits
  if (token !== undefined && getToken !== undefined) {
    throw invalid('only one of `token` and `getToken` can be given', 'token')
  }
  if (token !== undefined && !isToken(token)) {
    throw invalid('`token` must consist of visible ASCII characters', 'token')
  }
  assertAtLeast({ requestTimeoutMs }, 1)
  assertAtLeast({ retries, resumes }, 0)
  assertAtLeast({ appendWaitingBytes, sessionInFlightBytes }, MIB)
  const url = baseUrl(options.url)
  return {
    url,
    token,
    getToken,
    // Called without a receiver, and looked up at each call, so that a replaced `fetch` is used.
    fetch: fetch ?? ((request) => globalThis.fetch(request)),
    http2: options.http2 ?? fetch === undefined,
    headerPrefix,
    // Servers with the other prefix may not permit pages a header that they do not know.
    isPage: isPage() && headerPrefix === 'svc',
    // They compress frames with zstd if the browser accepts it, which pages cannot decompress.
    readsEvents: isPage() && headerPrefix === 's2',
    autoCreate: options.autoCreate ?? true,
    keepsForever: options.defaultRetention !== 'server',
    clock,
    random: options.random ?? Math.random,
    requestTimeoutMs,
    retries,
    onRetry: options.onRetry ?? (() => {}),
    resumes,
    compression: options.compression ?? (fetch === undefined && !isLocal(url)),
    limits: { appendWaitingBytes, sessionInFlightBytes },
  }
}

function isPage(): boolean {
  return 'document' in globalThis || 'WorkerGlobalScope' in globalThis
}

/** Whether the text can be sent as a token. */
export function isToken(text: unknown): text is string {
  return typeof text === 'string' && /^[!-~]+$/.test(text)
}

function isLocal(url: string): boolean {
  return /^(localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname)
}

function assertAtLeast(values: Readonly<Record<string, number>>, least: number): void {
  for (const [name, value] of Object.entries(values)) {
    if (!(value >= least)) throw invalid(`\`${name}\` must be at least ${least}, not ${value}`, name)
  }
}

function baseUrl(text: string | undefined): string {
  let url: URL
  try {
    url = new URL(text!)
  } catch {
    throw invalid("`url` must be an absolute URL, such as 'https://streams.example'", 'url')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw invalid('`url` must begin with http: or https:', 'url')
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw invalid('`url` must not have a user, a query or a fragment; pass an access token as `token`', 'url')
  }
  const path = url.pathname.replace(/\/+$/, '')
  return `${url.origin}${path.endsWith('/v1') ? path : `${path}/v1`}`
}
