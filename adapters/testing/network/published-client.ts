/** As much of the published client's `S2` as it takes to have its sessions over `fetch`. */
export interface FetchClient {
  basin(name: string): { stream: (name: string, options?: { forceTransport?: never }) => unknown }
}

/** Options of the published client's `S2`. */
export interface FetchClientOptions {
  readonly accessToken: string
  readonly endpoints: { readonly account: string; readonly basin: string }
  readonly retry: { readonly minBaseDelayMillis: number; readonly maxBaseDelayMillis: number }
}

/** The same client, whose streams have their sessions over `fetch` and never over HTTP/2. */
export function overFetch<Client extends FetchClient>(client: Client): Client {
  const basin = client.basin.bind(client)
  client.basin = (name: string) => {
    const handle = basin(name)
    const stream = handle.stream.bind(handle)
    handle.stream = (name, options) => stream(name, { ...options, forceTransport: 'fetch' as never })
    return handle
  }
  return client
}
