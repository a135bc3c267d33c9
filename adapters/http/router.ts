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

/** A node of the trie: the routes that share a prefix. */
interface TrieNode<Target> {
  route: Route<Target> | undefined
  readonly literals: Map<string, TrieNode<Target>>
  parameter: { readonly name: string; readonly node: TrieNode<Target> } | undefined
}

/**
 * Finds the route of a path, one segment at a time; a literal takes precedence over a parameter. Names are
 * not decoded first: a `/` in a name is `%2F` and separates nothing.
 */
export class Router<Target> implements RequestRouter<Target> {
  readonly #root: TrieNode<Target> = newNode()

  constructor(routes: readonly Route<Target>[]) {
    for (const route of routes) {
      let node = this.#root
      for (const segment of route.pattern.split('/')) node = childOf(node, segment)
      node.route = route
    }
  }

  /**
   * Tries a path that begins with the prefix without it first: some frameworks remove the prefix of a mounted
   * handler, others do not.
   */
  match(path: string, prefix: string): RouteMatch<Target> | undefined {
    const isMounted = prefix !== '' && `${path}/`.startsWith(`${prefix}/`)
    const mounted = isMounted ? path.slice(prefix.length) || '/' : undefined
    return (mounted === undefined ? undefined : this.#find(mounted)) ?? this.#find(path)
  }

  /** Returns whether a path below `root`, such as `/v1/stream`, may have a route. */
  mayServeBelow(root: string): boolean {
    let nodes = [this.#root]
    for (const segment of root.split('/')) {
      nodes = nodes.flatMap(({ literals, parameter }) => {
        const literal = literals.get(segment)
        return [...(literal ? [literal] : []), ...(parameter ? [parameter.node] : [])]
      })
    }
    return nodes.length > 0
  }

  #find(path: string): RouteMatch<Target> | undefined {
    const parameters: Record<string, string> = {}
    let node = this.#root
    for (const segment of path.split('/')) {
      const { literals, parameter } = node
      const literal = literals.get(segment)
      if (literal !== undefined) node = literal
      else if (parameter === undefined || segment === '') return undefined
      else {
        parameters[parameter.name] = segment
        node = parameter.node
      }
    }
    return node.route && { pattern: node.route.pattern, target: node.route.target, parameters }
  }
}

function newNode<Target>(): TrieNode<Target> {
  return { route: undefined, literals: new Map(), parameter: undefined }
}

function childOf<Target>(node: TrieNode<Target>, segment: string): TrieNode<Target> {
  const name = /^\{(\w+)\}$/.exec(segment)?.[1]
  if (name !== undefined) {
    node.parameter ??= { name, node: newNode() }
    return node.parameter.node
  }
  const child = node.literals.get(segment) ?? newNode<Target>()
  node.literals.set(segment, child)
  return child
}
