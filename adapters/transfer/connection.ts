import type { Clock } from '../../src/index.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { VENDOR_WORDS, type VendorHeader, vendorHeaderName } from '../../src/wire/words.ts'
import { TransferError } from './transfer-error.ts'

const SILENCE_MS_MAX = 30_000
/** A slow line needs time for what it sends before there can be an answer. */
const SENT_BYTES_PER_MS_MIN = 16
const ATTEMPTS_MAX = 6
const FIRST_PAUSE_MS = 200
const PAUSE_MS_MAX = 5_000
/** Far above a page of 1,000 names and a batch of records. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024
const NEVER = new AbortController().signal
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])

/** A service that speaks the wire protocol, on a network or in this process. */
export interface ConnectionOptions {
  readonly fetch: (request: Request) => Promise<Response>
  /** Without `/v1` and without a slash at the end. */
  readonly url: string
  /** The service for messages, where its address might hold a secret. */
  readonly name: string
  readonly token?: string | undefined
  /** In base64; sent with requests about records of encrypted streams only. */
  readonly encryptionKey?: string | undefined
  readonly clock: Clock
  /** Ends the transfer between two requests, and the request that is under way. */
  readonly signal: AbortSignal
}

export interface Call {
  readonly method: 'GET' | 'PUT' | 'POST'
  /** Behind `/v1`, with its query. */
  readonly path: string
  readonly basin?: string
  readonly withKey?: boolean
  /** Made to its end, also when the transfer was aborted: it changes, or puts back, what must not stay so. */
  readonly uninterrupted?: boolean | undefined
  readonly accept?: 'application/json' | 'application/protobuf'
  readonly body?: { readonly type: 'application/json' | 'application/protobuf'; readonly bytes: Uint8Array }
}

export interface Answer {
  readonly status: number
  readonly body: Uint8Array
  /** How often it was asked: from 2 on, an earlier attempt may have had its effect. */
  readonly attempts: number
}

/**
 * Makes requests, and makes them again where they failed for the moment (no connection, 408, 429, 5xx): six times, with growing pauses. What it is asked
 * for must therefore be harmless to repeat. Fails with {@link TransferError} when nothing comes for 30 s, and when the signal aborts.
 */
export class Connection {
  readonly options: ConnectionOptions
  /** Whether it has ever answered: what never did is hardly away for a moment. */
  #isKnown = false

  constructor(options: ConnectionOptions) {
    this.options = options
  }

  async call(call: Call): Promise<Answer> {
    for (let attempts = 1; ; attempts++) {
      const signal = call.uninterrupted ? NEVER : this.options.signal
      checkAborted(signal)
      const answer = await this.#attempt(call, attempts, signal)
      if (!(answer instanceof TransferError) && !TRANSIENT.has(answer.status)) return { ...answer, attempts }
      if (attempts >= ATTEMPTS_MAX || (!this.#isKnown && isRefused(answer))) {
        if (answer instanceof TransferError) throw answer
        return { ...answer, attempts }
      }
      await this.#pause(Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), PAUSE_MS_MAX), signal)
    }
  }

  /** An answer, or why there is none, which may be different the next time. */
  async #attempt(
    call: Call,
    attempt: number,
    signal: AbortSignal,
  ): Promise<Omit<Answer, 'attempts'> | TransferError> {
    const { fetch, url, name, clock } = this.options
    const control = new AbortController()
    let isSilent = false
    const silence = () => {
      isSilent = true
      control.abort()
    }
    const sendingMs = (call.body?.bytes.length ?? 0) / SENT_BYTES_PER_MS_MIN
    let cancel = clock.schedule(SILENCE_MS_MAX + sendingMs, silence)
    const heard = () => {
      cancel()
      cancel = clock.schedule(SILENCE_MS_MAX, silence)
    }
    const onAbort = () => control.abort()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      // A redirection is not followed: it would take the token elsewhere.
      const init: RequestInit = {
        method: call.method,
        headers: this.#headers(call),
        redirect: 'manual',
        signal: control.signal,
      }
      if (call.body !== undefined) init.body = call.body.bytes as Uint8Array<ArrayBuffer>
      const response = await abandonable(fetch(new Request(`${url}/v1${call.path}`, init)), control.signal)
      heard()
      this.#isKnown = true
      return { status: response.status, body: await wholeBody(response, control.signal, heard) }
    } catch (error) {
      if (error instanceof TooLong)
        throw new TransferError(`${name} is no such service: its answer is too long`)
      checkAborted(signal)
      const reason = isSilent ? `no answer within ${SILENCE_MS_MAX / 1000} seconds` : reasonOf(error)
      const again = attempt === 1 ? '' : `, ${attempt} times`
      return new TransferError(`cannot reach ${name}: ${reason}${again}`, {
        kind: 'unreachable',
        cause: error,
      })
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
    }
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

/** JSON as the body of a call. */
export function jsonBody(text: string): NonNullable<Call['body']> {
  return { type: 'application/json', bytes: utf8(text) }
}

class TooLong extends Error {}

function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new TransferError('interrupted', { kind: 'aborted' })
}

/** Every word that a service may expect: one that knows several sees the same value twice. */
function setVendorHeader(headers: Headers, header: VendorHeader, value: string): void {
  for (const word of VENDOR_WORDS) headers.set(vendorHeaderName(word, header), value)
}

async function wholeBody(response: Response, signal: AbortSignal, heard: () => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  if (reader === undefined) return new Uint8Array(0)
  try {
    for (;;) {
      const { done, value } = await abandonable(reader.read(), signal)
      if (done) return concatBytes(chunks)
      heard()
      length += value.length
      if (length > ANSWER_BYTES_MAX) throw new TooLong()
      chunks.push(value)
    }
  } catch (error) {
    reader.cancel().catch(() => {})
    throw error
  }
}

/** Not every `fetch` heeds its signal at once. */
function abandonable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abandon = () => reject(new Error('abandoned'))
    if (signal.aborted) abandon()
    signal.addEventListener('abort', abandon, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abandon))
  })
}

function isRefused(answer: unknown): boolean {
  const error = answer instanceof TransferError ? answer.cause : undefined
  const { code } = (error as { cause?: { code?: unknown } } | undefined)?.cause ?? {}
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND'
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: unknown; message?: unknown }; message?: unknown }
  return cause?.code === 'ECONNREFUSED' ? 'connection refused' : String(cause?.message || message)
}
