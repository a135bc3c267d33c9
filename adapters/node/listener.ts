import { HeadwaterError } from '../../src/model/errors.ts'
import { setConnection } from '../http/connection.ts'
import { ClientWatch } from './client-watch.ts'
import { discardRequest } from './discard-request.ts'
import type { FetchHandler } from './fetch-handler.ts'
import { LINGER_MS } from './limits.ts'
import { abortExchange, http2StreamOf, type NodeRequest, type NodeResponse } from './node-exchange.ts'
import { toRequest } from './request.ts'
import { sendResponse } from './send-response.ts'

export interface ListenerOptions {
  /** Told what the handler threw and why a response broke off. Default: `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** How long an upload may go on after its response is complete. Default 5,000. */
  readonly lingerMs?: number | undefined
  /** Whether responses ask their HTTP/1.1 clients to open another connection for the next request. */
  readonly isDraining?: (() => boolean) | undefined
  /** Called with each request. What it returns is called when the response has been taken or its client has left. */
  readonly onStart?: ((req: NodeRequest, res: NodeResponse) => () => void) | undefined
}

// `fetch` cannot express these.
const FORBIDDEN_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK'])

/**
 * A listener for the `request` event of Node's HTTP/1.1 and HTTP/2 servers that answers with a fetch handler. Never throws: a handler
 * that fails is a 500 that tells its client nothing but that.
 */
export function toNodeListener(
  handler: FetchHandler,
  options: ListenerOptions = {},
): (req: NodeRequest, res: NodeResponse) => Promise<void> {
  const report = options.onError ?? ((error) => console.error(error))
  const isDraining = options.isDraining ?? (() => false)

  return async (req, res) => {
    const watch = new ClientWatch(req, res, options.onStart?.(req, res))
    // What a lost connection had still in its buffers needs no answer, nor any effect.
    if (!watch.connected) return
    discardRequest(req, res, options.lingerMs ?? LINGER_MS)
    try {
      const response = await answer(handler, req, res, watch, report)
      await sendResponse(response, watch, { lastOnConnection: isDraining(), report })
    } catch (error) {
      if (!watch.signal.aborted) report(error)
      if (res.headersSent || watch.signal.aborted) return abortExchange(res)
      for (const name of res.getHeaderNames()) res.removeHeader(name)
      const options = { lastOnConnection: isDraining(), report }
      await sendResponse(internalError(), watch, options).catch(() => abortExchange(res))
    }
  }
}

async function answer(
  handler: FetchHandler,
  req: NodeRequest,
  res: NodeResponse,
  watch: ClientWatch,
  report: (error: unknown) => void,
): Promise<Response> {
  if (FORBIDDEN_METHODS.has(req.method ?? ''))
    return new Response(null, { status: 405, headers: { allow: '' } })
  let request: Request
  try {
    request = toRequest(req, watch.signal)
    watch.hold(request)
    setConnection(request, http2StreamOf(res)?.session ?? req.socket)
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return errorResponse(error.status, error.code, error.message)
  }
  try {
    return await handler(request)
  } catch (error) {
    if (watch.signal.aborted) throw error
    report(error)
    return internalError()
  }
}

function internalError(): Response {
  return errorResponse(500, 'other', 'Internal server error')
}

function errorResponse(status: number, code: string, message: string): Response {
  return Response.json({ code, message }, { status })
}
