import type { Headwater, Operation } from '../../src/index.ts'
import type { Reply } from './reply.ts'
import type { RequestContext } from './request-context.ts'

/** The second argument is the engine itself, for what is not done in the name of the caller. */
export type Endpoint = (context: RequestContext, owner: Headwater) => Reply | Promise<Reply>

export interface Method {
  readonly endpoint: Endpoint
  /**
   * What a caller must be permitted to be let in: at least one of these. `public` needs no token, `as configured` either none or the permission
   * for `account-metrics`.
   */
  readonly operations: readonly Operation[] | 'public' | 'as configured'
}

export interface Route {
  /** As in `/v1/streams/{stream}/records`: a name in braces stands for one segment that is not empty. */
  readonly pattern: string
  readonly methods: Readonly<Record<string, Method>>
}

export interface RouteMatch {
  readonly route: Route
  /** Segments as they stand in the path, still percent-encoded: a `/` in a name is `%2F` and does not split it. */
  readonly parameters: ReadonlyMap<string, string>
}

/** Finds the route of a path. Segments are compared before they are decoded. */
export class Router {
  readonly #routes: readonly { readonly route: Route; readonly segments: readonly string[] }[]

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((route) => ({ route, segments: route.pattern.split('/') }))
  }

  /**
   * A path that begins with the prefix is looked up without it, then as it is: frameworks that mount a handler differ in whether they
   * take the prefix off.
   */
  match(path: string, prefix: string): RouteMatch | undefined {
    const mounted = prefix !== '' && path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined
    return (mounted === undefined ? undefined : this.#find(mounted)) ?? this.#find(path)
  }

  #find(path: string): RouteMatch | undefined {
    const segments = path.split('/')
    for (const { route, segments: pattern } of this.#routes) {
      const parameters = parametersOf(segments, pattern)
      if (parameters !== undefined) return { route, parameters }
    }
    return undefined
  }
}

function parametersOf(
  segments: readonly string[],
  pattern: readonly string[],
): Map<string, string> | undefined {
  if (segments.length !== pattern.length) return undefined
  const parameters = new Map<string, string>()
  for (const [i, expected] of pattern.entries()) {
    const segment = segments[i]!
    if (expected.startsWith('{') && segment !== '') parameters.set(expected.slice(1, -1), segment)
    else if (segment !== expected) return undefined
  }
  return parameters
}
