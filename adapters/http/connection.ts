const connections = new WeakMap<Request, object>()

/** Tells by which connection a request came: the usage metrics count appends by it. Any object will do. */
export function setConnection(request: Request, connection: object): void {
  connections.set(request, connection)
}

/** Undefined where the runtime does not tell. */
export function connectionOf(request: Request): object | undefined {
  return connections.get(request)
}
