import { vendorHeaderName } from '../../src/wire/words.ts'

const PREFLIGHT_MAX_AGE_SECONDS = 86_400
const METHODS = 'GET, POST, PUT, PATCH, DELETE'

/** Answers a preflight: whatever is asked for is allowed (wire-behaviour.md 1.4). */
export function preflightHeaders(request: Request): Record<string, string> {
  const { headers } = request
  return {
    ...originHeaders(request),
    'access-control-allow-methods': headers.get('access-control-request-method') ?? METHODS,
    'access-control-allow-headers': headers.get('access-control-request-headers') ?? '*',
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SECONDS),
    vary: 'origin, access-control-request-method, access-control-request-headers',
  }
}

/** For every other response, errors too: without them a page is not even told the status. */
export function corsHeaders(request: Request, words: readonly string[]): Record<string, string> {
  const exposed = words.map((word) => vendorHeaderName(word, 'provision-result'))
  return {
    ...originHeaders(request),
    // With credentials a `*` would stand for itself.
    'access-control-expose-headers': [...exposed, 'retry-after', 'retry-after-ms', 'allow'].join(', '),
    vary: 'origin',
  }
}

function originHeaders(request: Request): Record<string, string> {
  const origin = request.headers.get('origin')
  return origin === null
    ? { 'access-control-allow-origin': '*' }
    : { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' }
}
