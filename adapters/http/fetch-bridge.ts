import type { Engine } from '../../src/index.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { HttpCore } from './core.ts'
import { bodyAlreadyRead, type RequestExchange } from './exchange.ts'
import { type HandlerOptions, handlerSettings } from './options.ts'
import type { Reply, ReplyStream } from './reply.ts'
import { protocolRouter } from './routes.ts'

/**
 * Returns a fetch handler that serves the protocol in any runtime and framework:
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const handler = createHandler(hw)
 * const token = await hw.createRootToken()
 * const headers = { authorization: `Bearer ${token}` }
 * const response = await handler(new Request('http://localhost/v1/basins', { headers }))
 * ```
 *
 * Instead of an engine, it takes a function that opens one: the first request calls it. If that fails, the
 * request is rejected with 503 `unavailable` and the reason, and the next request tries again.
 *
 * The handler never rejects: every failure is a response. Throws `invalid` for invalid options.
 */
export function createHandler(
  hw: Engine | (() => Promise<Engine>),
  options: HandlerOptions = {},
): (request: Request) => Promise<Response> {
  const settings = handlerSettings(options)
  return fetchHandler(new HttpCore(hw, settings, protocolRouter(settings)))
}

/** Returns the fetch handler of a core. */
export function fetchHandler(core: HttpCore): (request: Request) => Promise<Response> {
  return async (request) => toResponse(await core.handle(new FetchExchange(request)), request)
}

/** The exchange of a `Request`. */
class FetchExchange implements RequestExchange {
  readonly source: Request
  readonly method: string
  readonly path: string
  readonly query: string
  readonly host: string
  readonly hostname: string
  readonly isSecure: boolean
  readonly connection = undefined

  constructor(request: Request) {
    this.source = request
    this.method = request.method
    const url = new URL(request.url)
    this.path = url.pathname
    this.query = url.search.slice(1)
    this.hostname = url.hostname
    this.isSecure = url.protocol === 'https:'
    // Frameworks behind a proxy may build the URL from another host.
    this.host = this.header('host') ?? url.host
  }

  get signal(): AbortSignal {
    return this.source.signal
  }

  header(name: string): string | undefined {
    return this.source.headers.get(name) ?? undefined
  }

  chunks(): AsyncIterableIterator<Uint8Array> {
    if (this.source.bodyUsed || this.source.body?.locked) throw bodyAlreadyRead()
    const done = { done: true, value: undefined } as const
    let opened: Promise<BodyReader | undefined> | undefined
    const reader = () => {
      opened ??= readerOf(this.source)
      return opened
    }
    return {
      next: async () => {
        const body = await reader()
        return body === undefined ? done : readChunk(body, this.source.signal)
      },
      return: async () => {
        void reader()
          .then((body) => body?.cancel())
          .catch(() => {})
        return done
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }
}

type BodyReader = ReadableStreamDefaultReader<Uint8Array>

async function readerOf(request: Request): Promise<BodyReader | undefined> {
  // Service workers in Firefox have no streams of request bodies, which also hides whether there is a body.
  const body = request.body === undefined ? (await request.blob()).stream() : request.body
  return body?.getReader()
}

/**
 * Reads the next chunk of a body. Rejects with the reason of the signal if it has aborted and nothing
 * more of the body has arrived: not every runtime ends the body when the client leaves. The signal alone is
 * not enough, because Nitro 3.0 aborts it once the whole body has arrived.
 */
async function readChunk(
  reader: BodyReader,
  signal: AbortSignal,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let ignoreAbort = () => {}
  const left = new Promise<never>((_, reject) => {
    ignoreAbort = onAbort(signal, () => void macrotask().then(() => reject(signal.reason)))
  })
  try {
    return await Promise.race([reader.read(), left])
  } finally {
    ignoreAbort()
  }
}

/**
 * Cloudflare's workerd otherwise compresses a body whose `content-encoding` says that it is compressed. Other
 * runtimes ignore the member.
 */
const AS_ENCODED = { encodeBody: 'manual' }

/** Returns the reply as a fetch response. */
function toResponse({ status, headers, body }: Reply, request: Request): Response {
  const init = { status, ...(headers !== undefined && { headers }), ...AS_ENCODED }
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    return new Response((body ?? null) as BodyInit | null, init)
  }
  return new Response(streamOf(body, request), init)
}

/**
 * Streams the chunks at the pace of the reader. Fails when the client leaves, because an interrupted stream
 * must not look complete. Holds the request: Node aborts its signal only while it exists. A stream for a
 * request with a body fails with that body instead: see {@link readChunk}.
 */
function streamOf(body: ReplyStream, request: Request): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let isOpen = true
  let isPulling = false
  let ignoreAbort = () => {}
  const end = () => {
    isOpen = false
    ignoreAbort()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // While a chunk is asked for, the body itself reports the reason to its client.
        body.onEvicted = () => {
          if (isPulling || !isOpen) return
          end()
          void chunks.return?.()
          controller.error(new Error('the client did not read its response in time'))
        }
        if (request.method !== 'GET') return
        ignoreAbort = onAbort(request.signal, () => {
          isOpen = false
          void chunks.return?.()
          // Later, because some runtimes cancel the body themselves, Deno in the next turn of the event loop,
          // and log an error if it has failed by then.
          void macrotask()
            .then(macrotask)
            .then(() => controller.error(request.signal.reason))
        })
      },
      async pull(controller) {
        isPulling = true
        const { done, value } = await chunks.next()
        isPulling = false
        if (!isOpen) return
        if (done) {
          end()
          controller.close()
          return
        }
        // Copies: the reader may write to a chunk or transfer it, and parts share memory with others.
        const parts = value instanceof Uint8Array ? [value] : value
        for (const part of parts) controller.enqueue(new Uint8Array(part))
      },
      async cancel() {
        end()
        await chunks.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
