import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  type IncomingHttpHeaders as Http2Headers,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { RequestExchange } from '../../adapters/http/exchange.ts'
import type { Reply } from '../../adapters/http/reply.ts'
import { nodeHandler } from '../../adapters/node/handler.ts'
import { LINGER_MS } from '../../adapters/node/limits.ts'
import { type ListenOptions, type NodeServer, serveHandler } from '../../adapters/node/serve.ts'

/** Replies to an exchange, in place of the protocol. */
export type Handle = (exchange: RequestExchange) => Reply | Promise<Reply>

/** A server on a free port of 127.0.0.1 that is closed with the test. Collects the errors that it reports. */
export async function startServer(
  handle: Handle,
  { lingerMs = LINGER_MS, ...options }: ListenOptions & { readonly lingerMs?: number } = {},
): Promise<{ server: NodeServer; errors: unknown[] }> {
  const errors: unknown[] = []
  const handler = nodeHandler(async (exchange) => handle(exchange), {
    serves: () => true,
    openShare: () => ({ close() {} }),
    lingerMs,
    onError: (error) => errors.push(error),
  })
  const server = await serveHandler(handler, options)
  onTestFinished(() => server.close({ graceMs: 0 }))
  return { server, errors }
}

/** A connection with prior knowledge of HTTP/2, or with ALPN where the URL is `https`. */
export async function http2Client(
  url: string,
  options: Parameters<typeof connectHttp2>[1] = {},
): Promise<ClientHttp2Session> {
  const session = connectHttp2(url, options as object)
  onTestFinished(() => session.destroy())
  session.on('error', () => {})
  await once(session, 'connect')
  return session
}

export interface Http2Response {
  readonly headers: Http2Headers & { readonly ':status'?: number }
  readonly body: string
  /** The sizes of the DATA events that had anything in them. */
  readonly dataSizes: number[]
}

export async function http2Fetch(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Uint8Array,
): Promise<Http2Response> {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return await http2Response(stream)
}

export async function http2Response(stream: ClientHttp2Stream): Promise<Http2Response> {
  const [headers] = (await once(stream, 'response')) as [Http2Headers]
  const chunks = await collect(stream)
  return {
    headers,
    body: Buffer.concat(chunks).toString(),
    dataSizes: chunks.map((chunk) => chunk.byteLength),
  }
}

export async function collect(stream: Readable): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

/**
 * Waits for a condition that no event announces, one turn of the event loop at a time. The test's own timeout
 * bounds it.
 */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

/** A reply of 200 with this body. */
export function ok(body: Reply['body'] = 'ok'): Reply {
  return { status: 200, body }
}

export function json(value: unknown, status = 200): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
}

export async function bytesOf(exchange: RequestExchange): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of exchange.chunks()) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function textOf(exchange: RequestExchange): Promise<string> {
  return (await bytesOf(exchange)).toString()
}

/** A body of chunks, each in a later turn of the event loop. A failure comes after them, if `fails`. */
export async function* laterChunks(
  parts: readonly (string | Uint8Array)[],
  failure?: { readonly error: unknown },
) {
  for (const part of parts) {
    await new Promise((resolve) => setImmediate(resolve))
    yield Buffer.from(part)
  }
  await new Promise((resolve) => setImmediate(resolve))
  if (failure !== undefined) throw failure.error
}

/** What became of one response body and its request's signal. */
interface ResponseState {
  pulled: number
  cancelled: boolean
  aborted: boolean
}

export interface Tracked {
  readonly handler: Handle
  readonly fates: ResponseState[]
}

/**
 * A handler for tests of cancellation. `/pending` never answers, `/live` answers with one event and then
 * waits, `/endless` produces as fast as it is read.
 */
export function trackedHandler(chunkBytes = 64 * 1024): Tracked {
  const fates: ResponseState[] = []
  const handler: Handle = ({ signal, path }) => {
    const state: ResponseState = { pulled: 0, cancelled: false, aborted: false }
    fates.push(state)
    signal.addEventListener('abort', () => {
      state.aborted = true
    })
    if (path === '/pending') {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    }
    let end: (() => void) | undefined
    const body: AsyncIterableIterator<Uint8Array> = {
      next() {
        state.pulled += path === '/live' ? 1 : chunkBytes
        if (path === '/endless') return Promise.resolve({ done: false, value: new Uint8Array(chunkBytes) })
        if (state.pulled === 1) return Promise.resolve({ done: false, value: Buffer.from('data: first\n\n') })
        return new Promise((resolve) => {
          end = () => resolve({ done: true, value: undefined })
        })
      },
      return() {
        state.cancelled = true
        end?.()
        return Promise.resolve({ done: true, value: undefined })
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
  }
  return { handler, fates }
}
