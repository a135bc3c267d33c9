import { concatBytes } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type AnySignal, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { Malformed } from '../../src/wire/json.ts'

/** The longest body of a response that is not a session: above any page of 1,000 entries. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/** The slowest upload that is given time to finish. */
const UPLOAD_BYTES_PER_MS_MIN = 16

/** The reason for which an exchange ends. `abort` would make such an error with a stack for each request. */
const ENDED = new DOMException('the exchange has ended', 'AbortError')

/** The reason for which an exchange is aborted whose server sent nothing for too long. */
const silent = new WeakSet<HeadwaterError>()

/** Returns the reason to end an exchange whose server sent nothing for so long. */
export function silenceError(message: string, mayHaveEffects?: boolean): HeadwaterError {
  const details = mayHaveEffects === undefined ? {} : { mayHaveEffects }
  const error = new HeadwaterError('unavailable', message, details)
  silent.add(error)
  return error
}

/** Whether a signal aborted because nothing arrived for too long: the connection may be dead. */
export function isSilence(reason: unknown): boolean {
  return HeadwaterError.is(reason) && silent.has(reason)
}

/** The content of a request. */
export interface RequestContent {
  readonly method: string
  /** The values by names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
}

/** A request for a transport. */
export interface OutgoingRequest extends RequestContent {
  readonly url: string
  readonly signal: AbortSignal
  /** Makes the request for `fetch`. A redirect is not followed: it could send the token to another host. */
  toRequest(): Request
}

/** Reads the body of a response, as the readers of web streams do. */
export interface ChunkReader {
  read(): Promise<{ readonly done: false; readonly value: Uint8Array } | { readonly done: true }>
  cancel(): Promise<unknown>
}

/** The parts of a `Response` that the client uses. */
export interface IncomingResponse extends Pick<Response, 'ok' | 'status' | 'type'> {
  readonly headers: Pick<Headers, 'get'>
  readonly body: { getReader(): ChunkReader } | null
}

/** Sends a request, and resolves to the response when its headers have arrived. */
export type Transport = (request: OutgoingRequest) => Promise<IncomingResponse>

/**
 * One request and its response. It is aborted when nothing arrives for too long, and by signals. A response
 * that is not read has no deadline.
 */
export class Exchange {
  readonly #clock: Clock
  readonly #silenceMs: number
  readonly #control = new AbortController()
  readonly #ignoreSignals: () => void
  /** Kept until the end: in Node, the signal of a request that has been garbage-collected never aborts. */
  readonly #sent = new Set<Request>()
  #cancelTimer = () => {}

  constructor(clock: Clock, silenceMs: number, signals: readonly (AnySignal | undefined)[]) {
    this.#clock = clock
    this.#silenceMs = silenceMs
    this.#ignoreSignals = onAnyAbort(signals, (reason) => this.#control.abort(reason))
  }

  /** Resolves to the response. */
  async send(transport: Transport, url: string, content: RequestContent): Promise<IncomingResponse> {
    const { signal } = this.#control
    signal.throwIfAborted()
    const toRequest = () => {
      const { method, headers, body } = content
      const init = {
        method,
        headers,
        body: body as BodyInit,
        redirect: 'manual',
        signal,
        ...uncached(),
      } as const
      const request = new Request(url, init)
      this.#sent.add(request)
      return request
    }
    const uploadMs = Math.ceil((content.body?.length ?? 0) / UPLOAD_BYTES_PER_MS_MIN)
    const response = transport({ ...content, url, signal, toRequest })
    // Not every `fetch` reacts to its signal at once.
    return this.#within(this.#silenceMs + uploadMs, Promise.resolve(response))
  }

  /** Yields the body of a response as it arrives, without a deadline if it `isIdle` for long. */
  async *chunks(response: IncomingResponse, isIdle = false): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = response.body?.getReader()
    if (reader === undefined) return
    try {
      for (;;) {
        const result = await this.#within(isIdle ? Number.POSITIVE_INFINITY : this.#silenceMs, reader.read())
        if (result.done) return
        yield result.value
      }
    } finally {
      reader.cancel().catch(() => {})
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
    this.#sent.clear()
  }

  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    this.#cancelTimer = this.#clock.schedule(ms, () => {
      this.#control.abort(silenceError(`no data from the server within ${Math.ceil(ms / 1000)} seconds`))
    })
    try {
      return await unlessAborted(this.#control.signal, work)
    } finally {
      this.#cancelTimer()
    }
  }
}

let uncachedInit: RequestInit | undefined

/** Keeps browsers from storing responses. Some other runtimes reject the option. */
function uncached(): RequestInit {
  if (uncachedInit === undefined) {
    uncachedInit = { cache: 'no-store' }
    try {
      new Request('http://localhost', uncachedInit)
    } catch {
      uncachedInit = {}
    }
  }
  return uncachedInit
}
