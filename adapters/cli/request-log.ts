import type { IncomingHttpHeaders } from 'node:http'
import { HEADER_PREFIXES, vendorHeaderName } from '../../src/wire/headers.ts'
import type { NodeHandler } from '../node/index.ts'
import type { CliContext } from './context.ts'
import { printable } from './errors.ts'

export type LogFormat = 'text' | 'json'

/** Paths without secrets: everything else may be a token that was put into the wrong place. */
const LOGGED_PATH =
  /^\/($|health$|ping$|metrics$|followers$|sign-in$|v1\/access-tokens$|v1\/(basins|streams?|metrics|locations)(\/|$))/

/**
 * Wraps a request listener: logs one line for each response when it has ended, without the query, headers
 * and bodies.
 */
export function withRequestLog(
  handler: NodeHandler,
  format: LogFormat,
  { clock, now, print }: Pick<CliContext, 'clock' | 'now' | 'print'>,
): NodeHandler {
  return (req, res, next) => {
    const startedAt = now()
    const { method, headers } = req
    const path = pathOf(req.url ?? '')
    const basin = basinOf(headers)
    res.once('close', () => {
      const ms = Math.round((now() - startedAt) * 10) / 10
      const time = new Date(clock.now()).toISOString()
      const status = res.statusCode
      const words = [time, method, path, printable(basin ?? '-'), status, `${ms} ms`]
      print(format === 'json' ? JSON.stringify({ time, method, path, basin, status, ms }) : words.join(' '))
    })
    handler(req, res, next)
  }
}

function pathOf(url: string): string {
  const path = url.split('?')[0]!
  if (LOGGED_PATH.test(path)) return printable(path)
  return path.startsWith('/v1/access-tokens/') ? '/v1/access-tokens/(id)' : '(unknown)'
}

function basinOf(headers: IncomingHttpHeaders): string | undefined {
  const named = HEADER_PREFIXES.map((prefix) => headers[vendorHeaderName(prefix, 'basin')]).find(Boolean)
  const host = headers[':authority' as 'host'] ?? headers.host
  const subdomain = /^([^.]+)\.localhost(:|$)/.exec(host ?? '')?.[1]
  return typeof named === 'string' ? named : subdomain
}
