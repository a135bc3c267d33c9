import type { Headwater } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { basinAddress } from './basin-address.ts'
import type { Settings } from './options.ts'
import { pathParameter } from './path-parameter.ts'
import type { RouteMatch } from './router.ts'

/** What a request is about, as far as its address tells. A name in a body (`POST /v1/basins`) is not part of it. */
export interface AuthorizationTarget {
  readonly method: string
  /** The path of the endpoint, as in `/v1/streams/{stream}/records`. */
  readonly route: string
  /** Undefined when the address names none, or one that the request will be refused for. */
  readonly basin: string | undefined
  readonly stream: string | undefined
}

/** The engine as this request may use it. Rejects with what the request is refused for. */
export async function authorize(
  hw: Headwater,
  request: Request,
  match: RouteMatch,
  settings: Settings,
): Promise<Headwater> {
  if (settings.authorize !== undefined) {
    await settings.authorize(request, targetOf(request, match, settings))
    return hw
  }
  if (settings.open) return hw
  throw new HeadwaterError('authn', 'the handler has neither `open` nor `authorize`: no request is permitted')
}

function targetOf(request: Request, match: RouteMatch, settings: Settings): AuthorizationTarget {
  const { pattern } = match.route
  const parameter = (name: string) =>
    match.parameters.has(name) ? unlessRefused(() => pathParameter(match, name)) : undefined
  return {
    method: request.method,
    route: pattern,
    basin: pattern.startsWith('/v1/streams')
      ? unlessRefused(() => basinAddress(request, settings))
      : parameter('basin'),
    stream: parameter('stream'),
  }
}

/** What is malformed gets its own error later, once the request is permitted. */
function unlessRefused<Value>(decode: () => Value): Value | undefined {
  try {
    return decode()
  } catch {
    return undefined
  }
}
