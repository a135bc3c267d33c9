export interface Route<Target> {
  /** Such as `/v1/streams/{stream}/records`: a name in braces stands for one non-empty segment. */
  readonly pattern: string
  readonly target: Target
}

export interface RouteMatch<Target> extends Route<Target> {
  /** Segments of the path, still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Finds the route of a path. */
export interface RequestRouter<Target> {
  /** Handlers may be mounted at `prefix`, which paths then begin with or not. */
  match(path: string, prefix: string): RouteMatch<Target> | undefined
}

/**
 * Finds the first route whose pattern a path has. Names are not decoded first: a `/` in a name is `%2F` and
 * separates nothing.
 */
export class Router<Target> implements RequestRouter<Target> {
  readonly #routes: readonly (readonly [RegExp, Route<Target>])[]

  constructor(routes: readonly Route<Target>[]) {
    this.#routes = routes.map((route) => [expressionOf(route.pattern), route])
  }

  /**
   * Tries a path that begins with the prefix without it first: some frameworks remove the prefix of a mounted
   * handler, others do not.
   */
  match(path: string, prefix: string): RouteMatch<Target> | undefined {
    const isMounted = prefix !== '' && `${path}/`.startsWith(`${prefix}/`)
    const mounted = isMounted ? this.#find(path.slice(prefix.length) || '/') : undefined
    return mounted ?? this.#find(path)
  }

  #find(path: string): RouteMatch<Target> | undefined {
    for (const [expression, { pattern, target }] of this.#routes) {
      const match = expression.exec(path)
      if (match !== null) return { pattern, target, parameters: match.groups ?? {} }
    }
    return undefined
  }
}

function expressionOf(pattern: string): RegExp {
  const literal = pattern.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}
