import { Allowance } from '../../src/engine/allowance.ts'
import { MIB } from '../../src/model/limits.ts'
import { basinNameProblem } from '../../src/model/names.ts'
import { REQUEST_BODY_BYTES_MAX } from '../../src/wire/content-coding.ts'
import { VENDOR_WORDS } from '../../src/wire/words.ts'
import { bearerToken } from './authorization.ts'

export interface HandlerOptions {
  /** Permits everything to everybody who reaches the handler. Without it every request but `/health` needs an access token. */
  readonly open?: boolean
  /**
   * Where the access token of a request comes from, when not from `Authorization: Bearer`: a cookie, a session of the app. Undefined is none.
   * Throw a `HeadwaterError` to refuse the request in another way.
   */
  readonly tokenOf?: (request: Request) => string | undefined | Promise<string | undefined>
  /** Lets everybody read `/metrics`, which holds counts and no names. By default it needs a token that permits `account-metrics`. */
  readonly publicMetrics?: boolean
  /** The vendor words that are accepted in header names and in the session content type: `['svc', 's2']`. */
  readonly words?: readonly string[]
  /**
   * Lets any web page call the handler (CORS), with credentials. Default true, unless there is `tokenOf`: where the token is a cookie, any
   * page could call in the name of its visitors.
   */
  readonly cors?: boolean
  /** A request to `{basin}.{domain}` is one to that basin. Default `['localhost']`; ports do not matter. */
  readonly basinDomains?: readonly string[]
  /** The basin of requests that name none, for where there is only one: `EventSource` sends no headers. By default they are refused. */
  readonly basin?: string
  /** Largest body of a request that is no session, in bytes after decompression: at most, and by default, 2 MiB. */
  readonly maxBodyBytes?: number
  /**
   * Bytes of all request bodies, and unfinished frames of append sessions, that are held while the rest of them is still to come: beyond it a
   * request is refused with 429 `rate_limited`. At least 2 MiB; 256 MiB by default.
   */
  readonly maxBodiesBytes?: number
  /** Where the handler is mounted, as in `/streams`. It is taken off paths that begin with it; others are taken as they are. */
  readonly prefix?: string
  /** Told of failures with status 500, whose details clients do not get, and of what else was not foreseen. */
  readonly onError?: (error: unknown, request: Request) => void
}

/** Options with every default filled in. */
export interface Settings {
  readonly open: boolean
  readonly tokenOf: NonNullable<HandlerOptions['tokenOf']>
  readonly publicMetrics: boolean
  /** Stands for the connections of requests of which the runtime tells none. */
  readonly connection: object
  readonly words: readonly string[]
  readonly cors: boolean
  readonly basinDomains: readonly string[]
  readonly basin: string | undefined
  readonly maxBodyBytes: number
  readonly maxBodiesBytes: number
  readonly bodies: Allowance
  /** Without a slash at the end; `''` when there is none. */
  readonly prefix: string
  readonly onError: (error: unknown, request: Request) => void
}

/** As it stands in the path of a URL. */
function encodedPath(prefix: string): string {
  return new URL(prefix.startsWith('/') ? prefix : `/${prefix}`, 'http://localhost').pathname
}

/** Throws `RangeError` for options that make no sense. */
export function settingsOf(options: HandlerOptions): Settings {
  const {
    words = VENDOR_WORDS,
    basinDomains = ['localhost'],
    maxBodyBytes = REQUEST_BODY_BYTES_MAX,
    maxBodiesBytes = 256 * MIB,
  } = options
  if (words.length === 0 || !words.every((word) => /^[a-z0-9]+$/.test(word))) {
    throw new RangeError('words must be one or more words of lower-case letters and digits')
  }
  if (!(maxBodyBytes >= 0 && maxBodyBytes <= REQUEST_BODY_BYTES_MAX)) {
    throw new RangeError(`maxBodyBytes must be from 0 to ${REQUEST_BODY_BYTES_MAX}, not ${maxBodyBytes}`)
  }
  if (!(maxBodiesBytes >= REQUEST_BODY_BYTES_MAX)) {
    throw new RangeError(`maxBodiesBytes must be at least ${REQUEST_BODY_BYTES_MAX}, not ${maxBodiesBytes}`)
  }
  const basinProblem = options.basin === undefined ? undefined : basinNameProblem(options.basin)
  if (basinProblem !== undefined) throw new RangeError(basinProblem)
  for (const name of ['open', 'publicMetrics', 'cors'] as const) {
    // What comes from an environment is text, and 'false' would be true.
    if (options[name] !== undefined && typeof options[name] !== 'boolean') {
      throw new RangeError(`${name} must be true or false`)
    }
  }
  const prefix = (options.prefix ?? '').replace(/\/+$/, '')
  return {
    open: options.open ?? false,
    tokenOf: options.tokenOf ?? bearerToken,
    publicMetrics: options.publicMetrics ?? false,
    connection: {},
    words,
    cors: options.cors ?? options.tokenOf === undefined,
    basinDomains: basinDomains.map((domain) => domain.toLowerCase()),
    basin: options.basin,
    maxBodyBytes,
    maxBodiesBytes,
    bodies: new Allowance('maxBodiesBytes', maxBodiesBytes),
    prefix: prefix === '' ? '' : encodedPath(prefix),
    onError: (error, request) => {
      try {
        options.onError?.(error, request)
      } catch {
        // A log that fails must not fail a request too.
      }
    },
  }
}
