import type { Headwater } from '../../src/index.ts'
import { contentCodingOf } from '../../src/wire/content-coding.ts'
import { authorize } from './authorization.ts'
import { preflightHeaders } from './cors.ts'
import { type HandlerOptions, type Settings, settingsOf } from './options.ts'
import { errorReply, type Reply } from './reply.ts'
import { RequestContext } from './request-context.ts'
import { Router } from './router.ts'
import { ROUTES } from './routes/index.ts'
import { send } from './send.ts'

/** The client left before the answer; nobody gets this. */
const CLIENT_CLOSED_REQUEST = 499
const SUPPORTED_CODINGS = 'gzip, zstd'

/**
 * The wire protocol as a fetch handler, for any runtime and framework:
 *
 * ```ts
 * const handler = createHandler(hw, { open: true })
 * const response = await handler(new Request('http://localhost/v1/basins'))
 * ```
 *
 * It never rejects: whatever goes wrong is a response (wire-behaviour.md 2). Throws `RangeError` for options that make no sense.
 */
export function createHandler(
  hw: Headwater,
  options: HandlerOptions = {},
): (request: Request) => Promise<Response> {
  const settings = settingsOf(options)
  const router = new Router(ROUTES)
  return async (request) => {
    if (settings.cors && request.method === 'OPTIONS') {
      return new Response(null, { status: 204, headers: preflightHeaders(request) })
    }
    return send(await answer(request, hw, router, settings), request, settings)
  }
}

async function answer(request: Request, hw: Headwater, router: Router, settings: Settings): Promise<Reply> {
  const match = router.match(new URL(request.url).pathname, settings.prefix)
  if (match === undefined) return { status: 404 }
  const { methods, isPublic } = match.route
  const endpoint = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
  if (endpoint === undefined) return { status: 405, headers: { allow: Object.keys(methods).join(', ') } }
  let context = new RequestContext(request, hw, match, settings)
  try {
    if (!isPublic)
      context = new RequestContext(request, await authorize(hw, request, match, settings), match, settings)
    if (contentCodingOf(request.headers.get('content-encoding')) === undefined) {
      return { status: 415, headers: { 'accept-encoding': SUPPORTED_CODINGS } }
    }
    return await endpoint(context)
  } catch (error) {
    if (request.signal.aborted && error === request.signal.reason) return { status: CLIENT_CLOSED_REQUEST }
    context.report(error)
    return errorReply(error)
  }
}
