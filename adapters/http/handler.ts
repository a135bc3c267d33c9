import type { Headwater, Operation } from '../../src/index.ts'
import { contentCodingOf } from '../../src/wire/content-coding.ts'
import { authorized } from './authorization.ts'
import { preflightHeaders } from './cors.ts'
import { type HandlerOptions, type Settings, settingsOf } from './options.ts'
import { errorReply, type Reply } from './reply.ts'
import { RequestContext } from './request-context.ts'
import { type Method, Router } from './router.ts'
import { ROUTES } from './routes/index.ts'
import { send } from './send.ts'

/** The client left before the answer; nobody gets this. */
const CLIENT_CLOSED_REQUEST = 499
const SUPPORTED_CODINGS = 'gzip, zstd'

/**
 * The wire protocol as a fetch handler, for any runtime and framework:
 *
 * ```ts
 * const handler = createHandler(hw)
 * const token = await hw.createRootToken()
 * const headers = { authorization: `Bearer ${token}` }
 * const response = await handler(new Request('http://localhost/v1/basins', { headers }))
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
  const { methods } = match.route
  const method = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
  if (method === undefined) return { status: 405, headers: { allow: Object.keys(methods).join(', ') } }
  let context = new RequestContext(request, hw, match, settings)
  try {
    const operations = neededOperations(method, settings)
    if (operations !== undefined) {
      const caller = await authorized(hw, request, match, operations, settings)
      context = new RequestContext(request, caller, match, settings)
    }
    if (contentCodingOf(request.headers.get('content-encoding')) === undefined) {
      return { status: 415, headers: { 'accept-encoding': SUPPORTED_CODINGS } }
    }
    return await method.endpoint(context, hw)
  } catch (error) {
    if (request.signal.aborted && error === request.signal.reason) return { status: CLIENT_CLOSED_REQUEST }
    context.report(error)
    return errorReply(error)
  }
}

/** Undefined: everybody is let in. */
function neededOperations({ operations }: Method, settings: Settings): readonly Operation[] | undefined {
  if (operations === 'public') return undefined
  if (operations !== 'as configured') return operations
  return settings.publicMetrics ? undefined : ['account-metrics']
}
