export interface Route<Target> {
  /** Such as `/v1/streams/{stream}/records`: a name in braces stands for one non-empty segment. */
  readonly pattern: string
  /** Matches the paths, with their parameters as named groups. That of the pattern by default. */
  readonly expression?: RegExp | undefined
  /** Parameters that are not in the path. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  readonly target: Target
}

export interface RouteMatch<Target> {
  readonly pattern: string
  readonly target: Target
  /** Segments of the path, still percent-encoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/**
 * Finds the first route whose pattern a path has. Names are not decoded first: a `/` in a name is `%2F` and
 * separates nothing.
 */
export class Router<Target> {
  readonly #routes: readonly (readonly [RegExp, Route<Target>])[]

  constructor(routes: readonly Route<Target>[]) {
    this.#routes = routes.map((route) => [route.expression ?? expressionOf(route.pattern), route])
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
    for (const [expression, { pattern, parameters, target }] of this.#routes) {
      const match = expression.exec(path)
      if (match === null) continue
      const { groups = {} } = match
      return { pattern, target, parameters: parameters === undefined ? groups : { ...parameters, ...groups } }
    }
    return undefined
  }
}

function expressionOf(pattern: string): RegExp {
  return new RegExp(`^${literally(pattern).replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}

/** Returns the part of a regular expression that matches a text. Braces are kept as they are. */
export function literally(text: string): string {
  return text.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
}
