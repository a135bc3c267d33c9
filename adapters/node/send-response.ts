import { type ServerResponse, STATUS_CODES } from 'node:http'
import { FastResponse, sendNodeResponse } from 'srvx/node'
import type { ClientWatch } from './client-watch.ts'
import { readEagerly } from './eager-body.ts'
import { http2StreamOf, type NodeResponse } from './node-exchange.ts'
import { resumeBody } from './response-body.ts'

// Those of the connection are Node's to set; on HTTP/2 they are an error.
const CONNECTION_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])
const BODILESS_STATUSES = new Set([204, 205, 304])

interface SendOptions {
  readonly lastOnConnection: boolean
  /** Told why a response broke off that had begun already. */
  readonly report: (error: unknown) => void
}

/**
 * Sends a fetch response. Resolves when all of it is handed over, when it broke off, or when the client has left; the body is
 * cancelled then. Rejects when the response cannot be sent.
 */
export async function sendResponse(
  response: Response,
  watch: ClientWatch,
  { lastOnConnection, report }: SendOptions,
): Promise<void> {
  const res = watch.response
  const reader = response.body?.getReader()
  const cancel = () => void reader?.cancel(watch.signal.reason).catch(() => {})
  // `srvx` does not notice that an HTTP/2 client left before the response was ready.
  if (!watch.connected) return cancel()
  try {
    const { status } = response
    // That of `Response.error()` is 0.
    if (status < 200) throw new TypeError(`A response of status ${status} cannot be sent`)
    const headers = [...response.headers].filter(([name]) => !CONNECTION_HEADERS.has(name))
    const init = { status, statusText: STATUS_CODES[status] ?? '', headers }

    if (!reader || res.req.method === 'HEAD' || BODILESS_STATUSES.has(status)) {
      cancel()
      return await send(res, new FastResponse(null, init), lastOnConnection)
    }
    const eager = await readEagerly(reader)
    if (!watch.connected) return cancel()
    if (!eager.next) init.headers = headers.filter(([name]) => name !== 'content-length')
    const body = eager.next ? resumeBody(reader, eager, watch.signal, report) : Buffer.concat(eager.chunks)
    await send(res, new FastResponse(body, init), lastOnConnection)
    // `srvx` drops the client of a body that does not have its declared length, and tells nobody else.
    const error = 'errored' in res ? res.errored : undefined
    if (error && 'code' in error && error.code === 'ERR_HTTP_CONTENT_LENGTH_MISMATCH') report(error)
  } catch (error) {
    cancel()
    throw error
  }
}

function send(res: NodeResponse, response: Response, lastOnConnection: boolean): Promise<void> {
  if (http2StreamOf(res)) return sendNodeResponse(res as unknown as ServerResponse, response)
  const http1 = res as ServerResponse
  if (lastOnConnection) http1.setHeader('connection', 'close')
  // A body that does not have its declared length must not shift the framing of the connection.
  http1.strictContentLength = true
  const sent = sendNodeResponse(http1, response)
  // Otherwise the head waits for the first bytes of the body.
  if (http1.headersSent) http1.flushHeaders()
  return sent
}
