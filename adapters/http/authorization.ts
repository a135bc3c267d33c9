import type { Headwater, Operation, Resource } from '../../src/index.ts'
import { basinAddress } from './basin-address.ts'
import { connectionOf } from './connection.ts'
import type { Settings } from './options.ts'
import { pathParameter } from './path-parameter.ts'
import type { RouteMatch } from './router.ts'

/**
 * The engine as this request may use it. Rejects with 401 `authn` or 403 `permission_denied` before anything of the request is taken in, as
 * far as its address tells what it is about; the engine checks each call again.
 */
export async function authorized(
  hw: Headwater,
  request: Request,
  match: RouteMatch,
  operations: readonly Operation[],
  settings: Settings,
): Promise<Headwater> {
  const connection = connectionOf(request) ?? settings.connection
  if (settings.open) return hw.view({ connection })
  const token = (await settings.tokenOf(request)) ?? ''
  const caller = hw.view({ token, connection })
  await caller.checkPermission(operations, resourceOf(request, match, settings))
  return caller
}

/** The token of the header `Authorization: Bearer`, if there is one (service-interface.md "Authentication"). */
export function bearerToken(request: Request): string | undefined {
  return /^bearer +([!-~]+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
}

function resourceOf(request: Request, match: RouteMatch, settings: Settings): Resource {
  const { pattern } = match.route
  const parameter = (name: string) =>
    match.parameters.has(name) ? unlessRefused(() => pathParameter(match, name)) : undefined
  return {
    basin: pattern.startsWith('/v1/streams')
      ? unlessRefused(() => basinAddress(request, settings))
      : parameter('basin'),
    stream: parameter('stream'),
    tokenId: parameter('id'),
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
