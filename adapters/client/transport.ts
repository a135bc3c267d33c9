import type { ClientHttp2Stream } from 'node:http2'
import { concatBytes } from '../../src/model/bytes.ts'
import { type AnySignal, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { Malformed } from '../../src/wire/json.ts'
import { Silence } from './errors.ts'

/** A request as a transport sends it. */
export interface OutgoingRequest {
  readonly method: string
  readonly url: string
  /** The values by names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  readonly signal: AbortSignal
  /** Receives the stream of the body, which is written while the response arrives. Only over HTTP/2. */
  readonly upload?: ((stream: ClientHttp2Stream) => void) | undefined
}

/** A response whose headers have arrived. */
export interface IncomingResponse {
  readonly status: number
  /** Returns the value of a header, by its name in lower case. */
  header(name: string): string | undefined
  /** Resolves to what has arrived of the body; to undefined at its end. Rejects if it is cut short. */
  read(): Promise<Uint8Array | undefined>
  /** Stops receiving the body. */
  cancel(): void
}

/** Sends requests: the `fetch` of the runtime or of the program, and HTTP/2 of Node for sessions. */
export interface Transport {
  send(request: OutgoingRequest): Promise<IncomingResponse>
}

/** Makes a transport of a `fetch`. */
export function fetchTransport(fetch: (request: Request) => Promise<Response>): Transport {
  return {
    async send({ method, url, headers, body, signal }) {
      const request = requestOf(url, { method, headers, signal, body: body as BodyInit })
      keptRequests.set(signal, request)
      const response = await fetch(request)
      const reader = response.body?.getReader()
      return {
        status: response.type === 'opaqueredirect' ? 302 : response.status,
        header: (name) => response.headers.get(name) ?? undefined,
        read: async () => (await reader?.read())?.value,
        cancel: () => void reader?.cancel().catch(() => {}),
      }
    },
  }
}

/** In Node, the signal of a request that has been garbage-collected never aborts. */
const keptRequests = new WeakMap<AbortSignal, Request>()

/** Makes a request whose redirects are not followed: they could send the token to another host. */
function requestOf(url: string, init: RequestInit): Request {
  const unfollowed: RequestInit = { ...init, redirect: 'manual' }
  try {
    // Browsers would store responses.
    return new Request(url, { ...unfollowed, cache: 'no-store' })
  } catch {
    // Some other runtimes reject the option.
    return new Request(url, unfollowed)
  }
}

/** The longest body of a response that is not a session: above any page of 1,000 entries. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/** The slowest upload that is given time to finish. */
const UPLOAD_BYTES_PER_MS_MIN = 16

/** The reason for which an exchange ends. `abort` would make such an error with a stack for each request. */
const ENDED = new DOMException('the exchange has ended', 'AbortError')

/**
 * One request and its response. It is aborted when nothing arrives for too long, and by signals. A response
 * that is not read has no deadline.
 */
export class Exchange {
  readonly #clock: Clock
  readonly #silenceMs: number
  readonly #control = new AbortController()
  readonly #ignoreSignals: () => void
  #cancelTimer = () => {}

  constructor(clock: Clock, silenceMs: number, signals: readonly (AnySignal | undefined)[]) {
    this.#clock = clock
    this.#silenceMs = silenceMs
    this.#ignoreSignals = onAnyAbort(signals, (reason) => this.#control.abort(reason))
  }

  /** Resolves to the response. */
  async send(transport: Transport, content: Omit<OutgoingRequest, 'signal'>): Promise<IncomingResponse> {
    const { signal } = this.#control
    signal.throwIfAborted()
    const uploadMs = Math.ceil((content.body?.length ?? 0) / UPLOAD_BYTES_PER_MS_MIN)
    // Not every `fetch` reacts to its signal at once.
    return this.#within(this.#silenceMs + uploadMs, transport.send({ ...content, signal }))
  }

  /** Yields the body of a response as it arrives, without a deadline if it `isIdle` for long. */
  async *chunks(response: IncomingResponse, isIdle = false): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const ms = isIdle ? Number.POSITIVE_INFINITY : this.#silenceMs
        const chunk = await this.#within(ms, response.read())
        if (chunk === undefined) return
        yield chunk
      }
    } finally {
      response.cancel()
    }
  }

  /** Resolves to the body of a response. Rejects with {@link Malformed} if it exceeds 16 MiB. */
  async body(response: IncomingResponse): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.chunks(response)) {
      length += chunk.length
      if (length > RESPONSE_BYTES_MAX) throw new Malformed('its body is too long')
      chunks.push(chunk)
    }
    return concatBytes(chunks)
  }

  /** Resolves as the promise does. Rejects earlier if the exchange ends. */
  unlessEnded<Result>(work: Promise<Result>): Promise<Result> {
    return unlessAborted(this.#control.signal, work)
  }

  /** Aborts what is still under way. A second call does nothing. */
  end(reason: unknown = ENDED): void {
    this.#cancelTimer()
    this.#ignoreSignals()
    this.#control.abort(reason)
  }

  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    this.#cancelTimer = this.#clock.schedule(ms, () => {
      this.#control.abort(new Silence(`no data from the server within ${Math.ceil(ms / 1000)} seconds`))
    })
    try {
      return await this.unlessEnded(work)
    } finally {
      this.#cancelTimer()
    }
  }
}
