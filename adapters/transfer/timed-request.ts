import type { Clock } from '../../src/index.ts'
import { concatBytes } from '../../src/model/bytes.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'

/** A server must send a heartbeat in half of this time. */
const SILENCE_MS_MAX = 30_000
/** The slowest upload that is given time to finish. */
const UPLOAD_BYTES_PER_MS_MIN = 16
/** Far above a page of 1,000 names and a batch of records. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024

interface RequestContent {
  readonly method: string
  readonly headers: Headers
  readonly body?: string | Uint8Array | undefined
}

/**
 * A request that is aborted when no data arrives for 30 s, or when a signal aborts. Long requests are given
 * more time, because a server may send nothing until it has received all of them.
 */
export class TimedRequest {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #control = new AbortController()
  readonly #stop = () => this.#control.abort()
  /** Kept until the end: in Node, the signal of a request that has been garbage-collected never aborts. */
  readonly #sent = new Set<Request>()
  #uploadMs = 0
  #uploadedBy = 0
  #silentMs: number | undefined
  #cancel = () => {}

  constructor({ clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }) {
    this.#clock = clock
    this.#signal = signal
    signal.addEventListener('abort', this.#stop, { once: true })
    if (signal.aborted) this.#stop()
  }

  /** Why the request was aborted; undefined unless nothing arrived for too long. */
  get silence(): string | undefined {
    if (this.#silentMs === undefined) return undefined
    return `no response within ${Math.round(this.#silentMs / 1000)} seconds`
  }

  /** Resolves to the response. A redirect is not followed. A second call repeats the request. */
  async send(
    fetch: (request: Request) => Promise<Response>,
    url: string,
    { method, headers, body }: RequestContent,
  ): Promise<Response> {
    this.#uploadMs = SILENCE_MS_MAX + (body?.length ?? 0) / UPLOAD_BYTES_PER_MS_MIN
    this.#uploadedBy = this.#clock.now() + this.#uploadMs
    this.#restart()
    // Following a redirect could turn a POST into a GET, or send the token to another host.
    const init: RequestInit = { method, headers, redirect: 'manual', signal: this.#control.signal }
    if (body !== undefined) init.body = body as string | Uint8Array<ArrayBuffer>
    const request = new Request(url, init)
    this.#sent.add(request)
    // Not every `fetch` reacts to its signal immediately.
    const response = await unlessAborted(this.#control.signal, fetch(request))
    this.#restart()
    return response
  }

  /** The body of a response as it arrives. */
  async *chunks(response: Response): AsyncGenerator<Uint8Array> {
    const reader = response.body?.getReader()
    if (reader === undefined) return
    try {
      for (;;) {
        const { done, value } = await unlessAborted(this.#control.signal, reader.read())
        if (done) return
        this.#restart()
        yield value
      }
    } finally {
      reader.cancel().catch(() => {})
    }
  }

  /** Resolves to the body of a response, or to undefined if it is longer than 16 MiB. */
  async body(response: Response): Promise<Uint8Array | undefined> {
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.chunks(response)) {
      length += chunk.length
      if (length > RESPONSE_BYTES_MAX) return undefined
      chunks.push(chunk)
    }
    return concatBytes(chunks)
  }

  /** Also aborts a response that was not read to its end. */
  end(): void {
    this.#cancel()
    this.#signal.removeEventListener('abort', this.#stop)
    this.#control.abort()
    this.#sent.clear()
  }

  #restart(): void {
    this.#cancel()
    // A response may begin long before the request has been sent. The system time may change meanwhile.
    const uploadMs = Math.min(this.#uploadedBy - this.#clock.now(), this.#uploadMs)
    const ms = Math.max(SILENCE_MS_MAX, uploadMs)
    this.#cancel = this.#clock.schedule(ms, () => {
      this.#silentMs = ms
      this.#control.abort()
    })
  }
}
