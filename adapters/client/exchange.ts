import { concatBytes } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type AnySignal, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { MalformedResponse } from '../../src/wire/response-json.ts'

/** The longest body of a response that is not a session: above any page of 1,000 entries. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/** The slowest upload that is given time to finish. */
const UPLOAD_BYTES_PER_MS_MIN = 16

/** The content of a request. */
export interface RequestContent {
  readonly method: string
  readonly headers: Headers
  /** A stream is sent while the response arrives. */
  readonly body?: Uint8Array | ReadableStream<Uint8Array> | undefined
}

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

  /** Resolves to the response. A redirect is not followed: it could send the token to another host. */
  async send(
    fetch: (request: Request) => Promise<Response>,
    url: string,
    { method, headers, body }: RequestContent,
  ): Promise<Response> {
    const { signal } = this.#control
    signal.throwIfAborted()
    const init: RequestInit = { method, headers, redirect: 'manual', signal, ...uncached() }
    if (body !== undefined) Object.assign(init, { body, duplex: 'half' })
    const request = new Request(url, init)
    this.#sent.add(request)
    const uploadMs = body instanceof Uint8Array ? Math.ceil(body.length / UPLOAD_BYTES_PER_MS_MIN) : 0
    // Not every `fetch` reacts to its signal at once.
    return this.#within(this.#silenceMs + uploadMs, Promise.resolve(fetch(request)))
  }

  /** Yields the body of a response as it arrives, without a deadline if it `isIdle` for long. */
  async *chunks(response: Response, isIdle = false): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = response.body?.getReader()
    if (reader === undefined) return
    try {
      for (;;) {
        const { done, value } = await this.#within(
          isIdle ? Number.POSITIVE_INFINITY : this.#silenceMs,
          reader.read(),
        )
        if (done) return
        yield value
      }
    } finally {
      reader.cancel().catch(() => {})
    }
  }

  /** Resolves to the body of a response. Rejects with {@link MalformedResponse} if it exceeds 16 MiB. */
  async body(response: Response): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.chunks(response)) {
      length += chunk.length
      if (length > RESPONSE_BYTES_MAX) throw new MalformedResponse('its body is too long')
      chunks.push(chunk)
    }
    return concatBytes(chunks)
  }

  /** Aborts what is still under way. A second call does nothing. */
  end(reason?: unknown): void {
    this.#cancelTimer()
    this.#ignoreSignals()
    this.#control.abort(reason)
    this.#sent.clear()
  }

  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    this.#cancelTimer = this.#clock.schedule(ms, () => {
      const message = `no data from the server within ${Math.ceil(ms / 1000)} seconds`
      this.#control.abort(new HeadwaterError('unavailable', message))
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
