import type { TLSSocket } from 'node:tls'
import { NodeRequest as LazyRequest } from 'srvx/node'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { NodeRequest } from './node-exchange.ts'
import { readRequestBody } from './request-body.ts'

/**
 * The fetch form of a Node request, made by `srvx`.
 *
 * From its lazy look-alike, a genuine `Request`: applications wrap handlers and do `new Request(request, changes)`, which the
 * look-alike fails. With our own signal: `srvx` watches the response, which shows neither a half-closed connection nor the loss of one
 * on which the response still waits for its turn.
 *
 * @throws HeadwaterError `bad_path` or `bad_header` when target or host make no URL.
 */
export function toRequest(req: NodeRequest, signal: AbortSignal): Request {
  const url = requestUrl(req)
  const lazy = new LazyRequest({ req } as ConstructorParameters<typeof LazyRequest>[0])
  const { method } = lazy
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return new Request(url, {
    method,
    headers: lazy.headers,
    signal,
    ...(hasBody && { body: readRequestBody(lazy, req), duplex: 'half' }),
  })
}

/**
 * Not by `srvx`: it lets `host` go before `:authority` (RFC 9113, 8.3.1 forbids that), and serves a request without a proper URL as one
 * to the host `_invalid_` or to the path `/`.
 */
function requestUrl(req: NodeRequest): string {
  const scheme = (req.socket as TLSSocket).encrypted ? 'https' : 'http'
  const host = header(req, ':authority') ?? header(req, 'host') ?? 'localhost'
  const target = req.url ?? '/'
  const url =
    target.startsWith('/') || target === '*' ? `${scheme}://${host}/${target.replace(/^\//, '')}` : target
  if (!/^[^\s/?#@\\]+$/.test(host) || !URL.canParse(`${scheme}://${host}`)) {
    throw new HeadwaterError('bad_header', 'Invalid header `host`')
  }
  if (!/^https?:\/\/[^/?#@\\]+(?:[/?]|$)/i.test(url) || !URL.canParse(url)) throw badTarget()
  return withPathAsItIs(url)
}

/**
 * A `URL` resolves dot segments, encoded ones too, takes a backslash for a slash and cuts at `#`: each makes the target one of another
 * resource than the one that was named, and perhaps permitted. The path is therefore refused, or encoded, before.
 */
function withPathAsItIs(url: string): string {
  const [, origin, path, query] = /^(https?:\/\/[^/?]+)([^?]*)(.*)$/is.exec(url)!
  const hasDotSegment = path!.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
  if (hasDotSegment || url.includes('#')) throw badTarget()
  return `${origin}${path!.replaceAll('\\', '%5C')}${query}`
}

function badTarget(): HeadwaterError {
  return new HeadwaterError('bad_path', 'Invalid request target')
}

function header(req: NodeRequest, name: string): string | undefined {
  const value = req.headers[name]
  return Array.isArray(value) ? value[0] : value
}
