import { invalid } from '../../src/model/errors.ts'
import { UNARY_WAIT_MS_MAX } from '../../src/model/limits.ts'
import { basinNameProblem } from '../../src/model/names.ts'
import { assertOptions, assertText, type MembersOf } from '../../src/model/validation.ts'
import {
  assertRange,
  COMMON_OPTIONS,
  type HandlerOptions,
  type HandlerSettings,
  handlerSettings,
} from '../http/options.ts'
import { APPEND_BYTES_MAX } from './messages.ts'

/** How the Durable Streams protocol serves the streams of a basin. */
export interface DurableStreamsMount {
  /** The basin of all streams. It is created with the first stream. */
  readonly basin: string
  /** The path of the streams: each path below it is a stream. Default `/v1/stream`. */
  readonly path?: string | undefined
  /** How long a long poll waits for an append, in milliseconds, at most 60,000. Default 30,000. */
  readonly longPollMs?: number | undefined
  /** How long an event stream lasts before the client has to reconnect, in milliseconds. Default 60,000. */
  readonly sseMs?: number | undefined
}

/** Options of a handler for the Durable Streams protocol; most are those of `createHandler`. */
export interface DurableStreamsOptions
  extends DurableStreamsMount,
    Omit<HandlerOptions, 'publicMetrics' | 'basinDomains' | 'basin' | 'page'> {}

/** The members of {@link DurableStreamsMount}. */
export const DURABLE_STREAMS_MOUNT: MembersOf<DurableStreamsMount> = {
  basin: assertText,
  path: 'string',
  longPollMs: 'number',
  sseMs: 'number',
}

const OPTIONS: MembersOf<DurableStreamsOptions> = { ...COMMON_OPTIONS, ...DURABLE_STREAMS_MOUNT }

/** The options with all defaults. */
export interface DurableStreamsSettings {
  readonly http: HandlerSettings
  readonly basin: string
  /** The path of all streams, without a slash at the end. */
  readonly root: string
  readonly longPollMs: number
  readonly sseMs: number
  /** The header `cache-control` of responses that cannot change. */
  readonly cacheControl: string
}

/** The response headers that pages of other origins may read. */
const EXPOSED_HEADERS = [
  'stream-next-offset',
  'stream-cursor',
  'stream-up-to-date',
  'stream-closed',
  'stream-ttl',
  'stream-expires-at',
  'stream-sse-data-encoding',
  'producer-epoch',
  'producer-seq',
  'producer-expected-seq',
  'producer-received-seq',
  'etag',
  'location',
  'retry-after',
]

const DEFAULT_PATH = '/v1/stream'
const LONG_POLL_MS = 30_000
const SSE_MS = 60_000

/** Throws `invalid` for invalid options. */
export function durableStreamsSettings(options: DurableStreamsOptions): DurableStreamsSettings {
  assertOptions(options, OPTIONS)
  const { basin, path = DEFAULT_PATH, longPollMs = LONG_POLL_MS, sseMs = SSE_MS, ...shared } = options
  const http = handlerSettings(
    { ...shared, retention: shared.retention ?? 'infinite' },
    undefined,
    APPEND_BYTES_MAX,
  )
  const problem = basin === undefined ? '`basin` is required' : basinNameProblem(basin)
  if (problem !== undefined) throw invalid(problem, 'basin')
  assertRange(longPollMs, 'longPollMs', 0, UNARY_WAIT_MS_MAX)
  assertRange(sseMs, 'sseMs', 1)
  const visibility = http.auth === 'none' ? 'public' : 'private'
  return {
    http: {
      ...http,
      exposedHeaders: EXPOSED_HEADERS.join(', '),
      commonHeaders: {
        'x-content-type-options': 'nosniff',
        // Stored content is on the origin of an app: opened as a page, it must not act for the app's users.
        'content-security-policy': 'sandbox',
        'cross-origin-resource-policy': http.allowedOrigins.length > 0 ? 'cross-origin' : 'same-origin',
      },
    },
    basin,
    root: rootOf(path),
    longPollMs,
    sseMs,
    cacheControl: `${visibility}, max-age=60, stale-while-revalidate=300`,
  }
}

/** The path as it appears in the path of a URL, without a slash at the end. */
function rootOf(path: string): string {
  const absolute = path.startsWith('/') ? path : `/${path}`
  return new URL(absolute, 'http://localhost').pathname.replace(/\/+$/, '')
}
