import type { ServerResponse } from 'node:http'
import type { ClientWatch } from './client-watch.ts'
import { readEagerly } from './eager-body.ts'
import { abortExchange, http2StreamOf, type NodeResponse } from './node-exchange.ts'

// Those of the connection are Node's to set; on HTTP/2 they are an error.
const CONNECTION_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
const BODILESS_STATUSES = new Set([204, 205, 304])

/**
 * Sends a fetch response. Resolves when all of it is handed over, or when the client has left; the body is cancelled then. Rejects
 * when the response cannot be sent or its body fails.
 *
 * Not by `srvx`: on HTTP/2 it never notices a client that left before the response was ready, and a body that fails with
 * `undefined` leaves its client waiting for ever.
 */
export async function sendResponse(
  response: Response,
  watch: ClientWatch,
  lastOnConnection: boolean,
): Promise<void> {
  const res = watch.response
  const reader = response.body?.getReader()
  const cancel = () => void reader?.cancel(watch.signal.reason).catch(() => {})
  if (!watch.connected) return cancel()
  try {
    setHead(res, response, lastOnConnection)
    if (!reader || res.req.method === 'HEAD' || BODILESS_STATUSES.has(response.status)) {
      cancel()
      res.end()
      return
    }
    const { chunks, next } = await readEagerly(reader)
    if (!watch.connected) return cancel()
    if (!next) return sendWhole(res, chunks)
    if (watch.signal.aborted) {
      cancel()
      return abortExchange(res)
    }
    watch.signal.addEventListener('abort', cancel, { once: true })
    try {
      await sendStream(res, chunks, next, reader, watch.signal)
    } finally {
      watch.signal.removeEventListener('abort', cancel)
    }
  } catch (error) {
    cancel()
    throw error
  }
}

function setHead(res: NodeResponse, response: Response, lastOnConnection: boolean): void {
  // That of `Response.error()` is 0.
  if (response.status < 200) throw new TypeError(`A response of status ${response.status} cannot be sent`)
  res.statusCode = response.status
  for (const [name, value] of response.headers) {
    if (name !== 'set-cookie' && !CONNECTION_HEADERS.has(name)) res.setHeader(name, value)
  }
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) res.setHeader('set-cookie', cookies)
  if (http2StreamOf(res)) return
  if (lastOnConnection)
    res.setHeader('connection', 'close')
    // A body that does not have its declared length must not shift the framing of the connection.
  ;(res as ServerResponse).strictContentLength = true
}

function flushHead(res: NodeResponse): void {
  if (http2StreamOf(res)) res.writeHead(res.statusCode)
  else (res as ServerResponse).flushHeaders()
}

function sendWhole(res: NodeResponse, chunks: readonly Uint8Array[]): void {
  const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
  res.setHeader('content-length', body.byteLength)
  res.end(body)
}

async function sendStream(
  res: NodeResponse,
  chunks: readonly Uint8Array[],
  first: Promise<ReadableStreamReadResult<Uint8Array>>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  left: AbortSignal,
): Promise<void> {
  flushHead(res)
  for (const chunk of chunks) await write(res, chunk, left)
  for (let next = first; ; next = reader.read()) {
    const { done, value } = await next
    // A cancelled body reads as ended.
    if (left.aborted) return abortExchange(res)
    if (done) {
      res.end()
      return
    }
    await write(res, value, left)
  }
}

async function write(res: NodeResponse, chunk: Uint8Array, left: AbortSignal): Promise<void> {
  // Both responses take bytes, but the union of their overloads cannot be called.
  if (left.aborted || (res as ServerResponse).write(chunk)) return
  await new Promise<void>((resolve) => {
    const proceed = () => {
      res.off('drain', proceed)
      left.removeEventListener('abort', proceed)
      resolve()
    }
    res.once('drain', proceed)
    left.addEventListener('abort', proceed, { once: true })
  })
}
