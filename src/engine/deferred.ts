/** A service all of whose methods are asynchronous. */
type Asynchronous<Service> = {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the methods take is passed on as it is
  [Method in keyof Service]: (...input: any[]) => Promise<unknown>
}

/**
 * A service whose code is loaded when it is first used. Calls made one after the other reach it in that order. A load that fails is tried again by the next
 * call.
 */
export function deferred<Service extends Asynchronous<Service>>(load: () => Promise<Service>): Service {
  const call =
    (method: keyof Service) =>
    (...input: unknown[]) =>
      load().then((service) => service[method](...input))
  // No promise: what is awaited by mistake is itself.
  return new Proxy({} as Service, {
    get: (_, method) => (method === 'then' ? undefined : call(method as keyof Service)),
  })
}

/** Loads once, unless it failed. */
export function once<Result>(load: () => Promise<Result>): () => Promise<Result> {
  let loading: Promise<Result> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}
