import { utf8 } from '../../src/model/bytes.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { compress, RESPONSE_COMPRESSION_BYTES_MIN, responseCodingOf } from '../../src/wire/compression.ts'
import { STATUS_HEADER, STREAM_ID_HEADER } from '../../src/wire/headers.ts'
import type { RequestExchange } from './exchange.ts'
import type { HandlerSettings } from './options.ts'
import { corsHeaders } from './origins.ts'
import type { Reply } from './reply.ts'

/**
 * Adds CORS headers and the identity of the stream that was used, and compresses a body that is long enough
 * if `Accept-Encoding` allows it. Streams are not compressed. For `HEAD`, the body is left out.
 */
export function finishReply(
  reply: Reply,
  exchange: RequestExchange,
  settings: HandlerSettings,
  streamId?: string | undefined,
): MaybePromise<Reply> {
  const { allowedOrigins, commonHeaders, exposedHeaders } = settings
  const { status, body } = reply
  const headers = {
    ...commonHeaders,
    ...reply.headers,
    ...(streamId !== undefined && { [STREAM_ID_HEADER]: streamId }),
    // Errors need them too: without them, a page cannot even read the status.
    ...(allowedOrigins.length > 0 && corsHeaders(exchange, allowedOrigins, exposedHeaders)),
  }
  const plain = withExpectedStatus({ status, headers, body }, exchange)
  const isWhole = typeof body === 'string' || body instanceof Uint8Array
  const isLong = isWhole && body.length > RESPONSE_COMPRESSION_BYTES_MIN
  const finished = isLong ? compressed(plain, body, exchange, settings) : plain
  return exchange.method === 'HEAD' ? withoutBody(finished) : finished
}

/** The statuses that a client expects, as of a stream that does not exist yet. */
const EXPECTED_STATUSES = [404, 409, 412, 416]

/**
 * Moves an expected status into a header if the request asks for that. The failure must not be stored as the
 * success that it looks like then, nor serve a request that does not ask.
 */
function withExpectedStatus(reply: Reply, exchange: RequestExchange): Reply {
  const { status, headers, body } = reply
  if (!EXPECTED_STATUSES.includes(status) || exchange.header(STATUS_HEADER) === undefined) return reply
  const uncached = {
    ...headers,
    [STATUS_HEADER]: String(status),
    'cache-control': 'no-store',
    vary: varyOf(headers, STATUS_HEADER),
  }
  return { status: 200, headers: uncached, body }
}

/** The header `vary` of a reply that depends on one more header of the request. */
function varyOf(headers: Reply['headers'], name: string): string {
  return headers?.vary === undefined ? name : `${headers.vary}, ${name}`
}

async function withoutBody(reply: MaybePromise<Reply>): Promise<Reply> {
  const { status, headers, body } = await reply
  if (body === undefined) return { status, headers }
  const content = typeof body === 'string' ? utf8(body) : body
  if (content instanceof Uint8Array) {
    return { status, headers: { ...headers, 'content-length': String(content.length) } }
  }
  // Ends the session whose headers are all that was asked for.
  await content[Symbol.asyncIterator]().return?.()
  return { status, headers }
}

/** Compresses the body if the client and the options allow it. */
function compressed(
  reply: Reply,
  body: string | Uint8Array,
  exchange: RequestExchange,
  settings: HandlerSettings,
): MaybePromise<Reply> {
  // Next sends the body of a route handler without its `content-encoding`, and compresses it itself. Its
  // requests have a `nextUrl`.
  if (!settings.compression || 'nextUrl' in exchange.source) return reply
  const headers = { ...reply.headers, vary: varyOf(reply.headers, 'accept-encoding') }
  const coding = responseCodingOf(exchange.header('accept-encoding') ?? null)
  if (coding === undefined) return { ...reply, headers }
  return compress(coding, typeof body === 'string' ? utf8(body) : body).then(
    (encoded) => ({ ...reply, headers: { ...headers, 'content-encoding': coding }, body: encoded }),
    (error) => {
      // The codec of this runtime fails; the plain body is still a valid response.
      settings.onError(error, exchange)
      return { ...reply, headers }
    },
  )
}
