import type { Clock } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { HEADER_PREFIXES } from '../../src/wire/media-type.ts'
import { type VendorHeader, vendorHeaderName } from '../../src/wire/vendor-headers.ts'
import { TimedRequest } from './timed-request.ts'
import { TransferError } from './transfer-error.ts'

const ATTEMPTS_MAX = 6
const FIRST_PAUSE_MS = 200
const PAUSE_MS_MAX = 5_000
const NEVER = new AbortController().signal
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])

/** A service on the network, or the handler of an engine in this process. */
export interface ConnectionOptions {
  readonly fetch: (request: Request) => Promise<Response>
  /** Without `/v1` and without a trailing slash. */
  readonly url: string
  /** Stands for the URL in messages, because the URL may contain a secret. */
  readonly name: string
  readonly token?: string | undefined
  /** In base64. Sent only with requests for records of encrypted streams. */
  readonly encryptionKey?: string | undefined
  readonly clock: Clock
  /** Ends the transfer, and aborts a request in flight. */
  readonly signal: AbortSignal
}

export interface Call {
  readonly method: 'GET' | 'PUT' | 'POST'
  /** After `/v1`, with the query. */
  readonly path: string
  readonly basin?: string
  readonly withKey?: boolean
  /** Completes even if the transfer is aborted: for temporary changes and their reversal. */
  readonly uninterrupted?: boolean | undefined
  readonly accept?: 'application/json' | 'application/protobuf'
  readonly body?: { readonly type: 'application/json' | 'application/protobuf'; readonly bytes: Uint8Array }
}

export interface ServiceResponse {
  readonly status: number
  readonly body: Uint8Array
  /** If it exceeds 1, an earlier attempt may have taken effect. */
  readonly attempts: number
}

/**
 * Sends requests, and retries up to five times with growing pauses after a transient failure: no connection,
 * 408, 429 or 5xx. Requests must therefore be safe to repeat. Rejects with {@link TransferError} after 30 s
 * without data, and when the signal aborts.
 */
export class Connection {
  readonly options: ConnectionOptions
  /**
   * A service that has never responded is more likely wrong than restarting: refused connections are final.
   */
  #hasResponded = false

  constructor(options: ConnectionOptions) {
    this.options = options
  }

  async call(call: Call): Promise<ServiceResponse> {
    for (let attempts = 1; ; attempts++) {
      const signal = call.uninterrupted ? NEVER : this.options.signal
      checkAborted(signal)
      const result = await this.#attempt(call, attempts, signal)
      if (!(result instanceof TransferError) && !TRANSIENT.has(result.status)) return { ...result, attempts }
      if (attempts >= ATTEMPTS_MAX || (!this.#hasResponded && isRefused(result))) {
        if (result instanceof TransferError) throw result
        return { ...result, attempts }
      }
      await this.#pause(Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), PAUSE_MS_MAX), signal)
    }
  }

  /** Resolves to the error if there was no response. */
  async #attempt(
    call: Call,
    attempt: number,
    signal: AbortSignal,
  ): Promise<Omit<ServiceResponse, 'attempts'> | TransferError> {
    const { fetch, url, name, clock } = this.options
    const request = new TimedRequest({ clock, signal })
    try {
      const content = { method: call.method, headers: this.#headers(call), body: call.body?.bytes }
      const response = await request.send(fetch, `${url}/v1${call.path}`, content)
      this.#hasResponded = true
      const body = await request.body(response)
      if (body !== undefined) return { status: response.status, body }
    } catch (error) {
      checkAborted(signal)
      const reason = request.silence ?? reasonOf(error)
      const tries = attempt === 1 ? '' : ` (${attempt} attempts)`
      return new TransferError(`cannot reach ${name}: ${reason}${tries}`, {
        kind: 'unreachable',
        cause: error,
      })
    } finally {
      request.end()
    }
    throw new TransferError(`unexpected response from ${name}: its body is too long`)
  }

  #headers({ basin, withKey, accept, body }: Call): Headers {
    const { token, encryptionKey } = this.options
    const headers = new Headers({ accept: accept ?? 'application/json' })
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    if (body !== undefined) headers.set('content-type', body.type)
    if (basin !== undefined) setVendorHeader(headers, 'basin', basin)
    if (withKey && encryptionKey !== undefined) setVendorHeader(headers, 'encryption-key', encryptionKey)
    return headers
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.options
    return new Promise((resolve) => {
      const done = () => {
        cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = clock.schedule(ms, done)
      signal.addEventListener('abort', done, { once: true })
    })
  }
}

export function jsonBody(text: string): NonNullable<Call['body']> {
  return { type: 'application/json', bytes: utf8(text) }
}

function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new TransferError('interrupted', { kind: 'aborted' })
}

/**
 * Sends the header under every prefix, because services differ; one that knows several gets the same value.
 */
function setVendorHeader(headers: Headers, header: VendorHeader, value: string): void {
  for (const prefix of HEADER_PREFIXES) headers.set(vendorHeaderName(prefix, header), value)
}

function isRefused(result: unknown): boolean {
  const error = result instanceof TransferError ? result.cause : undefined
  const { code } = (error as { cause?: { code?: unknown } } | undefined)?.cause ?? {}
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND'
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: unknown; message?: unknown }; message?: unknown }
  return cause?.code === 'ECONNREFUSED' ? 'connection refused' : String(cause?.message || message)
}
