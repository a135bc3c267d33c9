import { type Call, headersOf, type Target, urlOf } from './request.ts'

/** A response whose status is not 2xx, or no response at all (status 0, code `network`). */
export class ApiError extends Error {
  readonly status: number
  /** The code of the error body; empty if it has none. */
  readonly code: string
  /** How long the server asks to wait before the next request (`retry-after`), in milliseconds. */
  readonly retryAfterMs: number

  constructor(status: number, code: string, message: string, retryAfterMs = 0) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterMs = retryAfterMs
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || [408, 429, 500, 502, 503, 504].includes(this.status)
  }
}

/** Begins the message about a response that no server of the protocol sends. */
export const NOT_A_SERVER = 'this address does not speak the wire protocol'

/** Sends calls with the access token of the console. */
export class Client {
  readonly target: Target
  /** Kept here only; see `credentials.ts`. */
  token: string | undefined
  /** Called for each 401 of a request with the present token. */
  onUnauthorized: () => void = () => {}
  readonly #fetch: (request: Request) => Promise<Response>

  constructor(fetch: (request: Request) => Promise<Response>, target: Target) {
    this.#fetch = fetch
    this.target = target
  }

  /** Resolves to a response with status 2xx. Rejects with {@link ApiError}, or with an `AbortError`. */
  async send(call: Call, signal?: AbortSignal): Promise<Response> {
    const headers = headersOf(call, this.target)
    const { token } = this
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    const key = call.encryptionKey
    if (key !== undefined && key !== '') headers[`${this.target.headerPrefix}-encryption-key`] = key
    const response = await this.#request(call, headers, signal)
    if (response.ok) return response
    const error = await errorOf(response)
    // A request that was sent with an earlier token says nothing about this one.
    if (error.status === 401 && token === this.token) this.onUnauthorized()
    throw error
  }

  /** The JSON of the response; undefined if it has no body. */
  async json<Result>(call: Call, signal?: AbortSignal): Promise<Result> {
    const response = await this.send(call, signal)
    const text = await response.text()
    if (text === '') return undefined as Result
    try {
      return JSON.parse(text) as Result
    } catch {
      throw new ApiError(response.status, '', `${NOT_A_SERVER}: the response is not JSON`)
    }
  }

  async #request(
    call: Call,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const send = this.#fetch
    try {
      const request = new Request(urlOf(call, this.target), {
        method: call.method,
        headers,
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
        ...(signal !== undefined && { signal }),
      })
      return await send(request)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      throw new ApiError(0, 'network', `no response from the server: ${messageOf(error)}`)
    }
  }
}

/** The message of anything thrown. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  // A date instead of seconds is rare, and not worth its code.
  const seconds = Number(response.headers.get('retry-after'))
  return errorOfBody(response.status, text, seconds > 0 ? seconds * 1000 : 0)
}

/** The error of a response or of an SSE `error` event, from the text of its body. */
export function errorOfBody(status: number, text: string, retryAfterMs = 0): ApiError {
  const body = parseObject(text)
  const code = typeof body?.code === 'string' ? body.code : ''
  const message = typeof body?.message === 'string' ? body.message : explain(status, body)
  return new ApiError(status, code, message, retryAfterMs)
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The bodies that have members of their own instead of a code and a message. */
function explain(status: number, body: Readonly<Record<string, unknown>> | undefined): string {
  if (body !== undefined && 'fencing_token_mismatch' in body) {
    const token = body.fencing_token_mismatch
    return token === ''
      ? 'the stream has no fencing token'
      : `the fencing token of the stream is ${JSON.stringify(token)}`
  }
  if (body !== undefined && 'seq_num_mismatch' in body) {
    return `the next sequence number of the stream is ${body.seq_num_mismatch}`
  }
  const tail = body?.tail as { readonly seq_num?: number } | undefined
  if (status === 416 && tail !== undefined) return `no record there: the tail is ${tail.seq_num}`
  return status === 0 ? 'the server reported an error' : `the server responded with status ${status}`
}
