import type { TLSSocket } from 'node:tls'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { NodeRequest } from './node-exchange.ts'
import { readRequestBody } from './request-body.ts'

/**
 * The fetch form of a Node request.
 *
 * A genuine `Request`, though a lazy look-alike (as `srvx` has) is some microseconds cheaper: applications wrap handlers and do
 * `new Request(request, changes)`, which a look-alike fails.
 *
 * @throws HeadwaterError `bad_path` or `bad_header` when target or host make no URL.
 */
export function toRequest(req: NodeRequest, signal: AbortSignal): Request {
  const method = req.method ?? 'GET'
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return new Request(requestUrl(req), {
    method,
    headers: requestHeaders(req.rawHeaders),
    signal,
    ...(hasBody && { body: readRequestBody(req), duplex: 'half' }),
  })
}

function requestHeaders(raw: readonly string[]): Headers {
  const headers = new Headers()
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!
    const isPseudoHeader = name.startsWith(':')
    if (!isPseudoHeader) headers.append(name, raw[i + 1]!)
  }
  return headers
}

function requestUrl(req: NodeRequest): string {
  const scheme = (req.socket as TLSSocket).encrypted ? 'https' : 'http'
  const host = header(req, ':authority') ?? header(req, 'host') ?? 'localhost'
  const target = req.url ?? '/'
  const url =
    target.startsWith('/') || target === '*' ? `${scheme}://${host}/${target.replace(/^\//, '')}` : target
  if (!/^[^\s/?#@\\]+$/.test(host) || !URL.canParse(`${scheme}://${host}`)) {
    throw new HeadwaterError('bad_header', 'Invalid header `host`')
  }
  if (!/^https?:\/\/[^/?#@\\]/i.test(url) || !URL.canParse(url)) {
    throw new HeadwaterError('bad_path', 'Invalid request target')
  }
  return url
}

function header(req: NodeRequest, name: string): string | undefined {
  const value = req.headers[name]
  return Array.isArray(value) ? value[0] : value
}
