export interface Call {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What the browser lets the page read of a response. */
export async function send({ url, ...init }: Call) {
  const response = await fetch(url, init)
  return {
    status: response.status,
    type: response.type,
    provisionResult: response.headers.get('svc-provision-result'),
    body: await response.text(),
  }
}

/** The name of the error with which `fetch` rejects. */
export function refusal(call: Call): Promise<string> {
  return send(call).then(
    ({ status }) => `answered ${status}`,
    (error: Error) => error.name,
  )
}
