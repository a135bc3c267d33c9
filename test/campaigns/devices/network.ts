import {
  fetchFailed,
  relayedResponse,
  terminated,
} from '../../../adapters/testing/network/relayed-response.ts'
import type { Clock } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'

type Handler = (request: Request) => Promise<Response>

/** The chances of a request, from 0 to 1, and delays in milliseconds. */
export interface NetworkRates {
  readonly lost: number
  /** Among lost requests: those that still arrive after the client has given up on them. */
  readonly late: number
  /** Requests of which the server gets only a part. */
  readonly requestCut: number
  readonly responseLost: number
  readonly duplicated: number
  /** Responses of which the client gets only a part. */
  readonly cut: number
  /** Responses that end nowhere: the connection stays open, and nothing arrives any more. */
  readonly stalled: number
  readonly delayMs: number
  readonly lateMs: number
}

export const HEALTHY: NetworkRates = {
  lost: 0,
  late: 0,
  requestCut: 0,
  responseLost: 0,
  duplicated: 0,
  cut: 0,
  stalled: 0,
  delayMs: 5,
  lateMs: 0,
}

/** The most bytes that arrive of a request or response that is cut or stalls. */
const PART_BYTES_MAX = 2_000

/** A request that can be delivered more than once, and after the client has given up. */
interface Sending {
  readonly body: Uint8Array<ArrayBuffer> | null
  /** Returns the request with another body. */
  readonly withBody: (body: BodyInit | null, signal?: AbortSignal) => Request
}

/**
 * The network between one device and a server. It loses, delays, duplicates, reorders and cuts requests,
 * delivers lost ones late, loses, cuts and withholds responses, and can be disconnected.
 */
export class SimulatedNetwork {
  readonly #clock: Clock
  readonly #prng: Prng
  readonly #handlerOf: () => Handler | undefined
  readonly #admits: () => boolean
  readonly #exchanges = new Set<AbortController>()
  rates: NetworkRates = HEALTHY
  #isConnected = true

  /**
   * `handlerOf` returns undefined while the server is down. A request that `admits` does not admit waits
   * until the client gives up on it, so that no number of them takes long.
   */
  constructor(clock: Clock, prng: Prng, handlerOf: () => Handler | undefined, admits: () => boolean) {
    this.#admits = admits
    this.#clock = clock
    this.#prng = prng
    this.#handlerOf = handlerOf
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Disconnecting fails every request and response in flight. */
  set isConnected(isConnected: boolean) {
    this.#isConnected = isConnected
    if (!isConnected) this.reset()
  }

  /** Fails every request and response in flight. */
  reset(): void {
    for (const exchange of [...this.#exchanges]) exchange.abort(fetchFailed('ECONNRESET', 'connection reset'))
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
    if (!this.#admits()) return unlessAborted(new Promise<never>(() => {}), request.signal)
    if (!this.#isConnected) throw fetchFailed('ECONNREFUSED', 'offline')
    const exchange = new AbortController()
    const giveUp = () => exchange.abort(request.signal.reason)
    if (request.signal.aborted) throw request.signal.reason
    request.signal.addEventListener('abort', giveUp, { once: true })
    this.#exchanges.add(exchange)
    const end = () => {
      request.signal.removeEventListener('abort', giveUp)
      this.#exchanges.delete(exchange)
    }
    const { url, method, headers } = request
    const withBody = (part: BodyInit | null, signal?: AbortSignal) =>
      new Request(url, {
        method,
        headers,
        body: part,
        duplex: 'half',
        ...(signal && { signal }),
      } as RequestInit)
    try {
      return await this.#exchange({ body, withBody }, exchange, end)
    } catch (error) {
      end()
      throw error
    }
  }

  async #exchange(sending: Sending, { signal }: AbortController, end: () => void): Promise<Response> {
    const { lost, late, requestCut, responseLost, duplicated, cut, stalled, delayMs, lateMs } = this.rates
    const { body, withBody } = sending
    await this.#pause(this.#prng.below(delayMs + 1), signal)
    if (this.#prng.chance(lost)) {
      if (this.#prng.chance(late)) this.#deliverLater(withBody(body), lateMs)
      throw fetchFailed('ECONNRESET', 'the request was lost')
    }
    if (this.#prng.chance(duplicated)) this.#deliverLater(withBody(body), lateMs)
    const handler = this.#handlerOf()
    if (handler === undefined) throw fetchFailed('ECONNREFUSED', 'the server is down')
    if (this.#prng.chance(requestCut)) {
      if (body !== null) this.#deliverPart(withBody(partOf(body, this.#prng)), handler)
      throw fetchFailed('ECONNRESET', 'the request was cut')
    }
    const response = await unlessAborted(handler(withBody(body, signal)), signal)
    await this.#pause(this.#prng.below(delayMs + 1), signal)
    if (this.#prng.chance(responseLost)) {
      response.body?.cancel().catch(() => {})
      throw fetchFailed('ECONNRESET', 'the response was lost')
    }
    const afterBytes = this.#prng.below(PART_BYTES_MAX)
    const isCut = this.#prng.chance(cut)
    const relayed = this.#prng.chance(stalled) ? stalledResponse(response, afterBytes) : response
    return relayedResponse(relayed, {
      signal,
      onEnd: end,
      ...(isCut && { cut: { afterBytes, error: terminated('the response was cut') } }),
    })
  }

  /** Delivers a request of which the client knows nothing any more. Its response goes nowhere. */
  #deliverLater(request: Request, lateMs: number): void {
    this.#clock.schedule(this.#prng.below(lateMs + 1), () => {
      const handling = this.#handlerOf()?.(request)
      handling?.then((response) => response.body?.cancel()).catch(() => {})
    })
  }

  /** Delivers a request whose body fails. */
  #deliverPart(request: Request, handler: Handler): void {
    handler(request)
      .then((response) => response.body?.cancel())
      .catch(() => {})
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (delayMs === 0) return
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#clock.schedule(delayMs, () => {
        signal.removeEventListener('abort', abort)
        resolve()
      })
      const abort = () => {
        cancel()
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
    })
  }
}

/** Returns a body that fails after some of its bytes. */
function partOf(body: Uint8Array<ArrayBuffer>, prng: Prng): ReadableStream<Uint8Array> {
  const part = body.subarray(0, prng.below(body.length))
  return new ReadableStream({
    start: (controller) => {
      if (part.length > 0) controller.enqueue(part)
    },
    pull: (controller) => controller.error(terminated('the request was cut')),
  })
}

/** Returns the response with a body that neither goes on nor ends after some bytes. */
function stalledResponse(response: Response, afterBytes: number): Response {
  const { body, status, statusText, headers } = response
  if (body === null) return response
  const reader = body.getReader()
  let bytesLeft = afterBytes
  const stalled = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value } = bytesLeft > 0 ? await reader.read() : { value: undefined }
        if (value === undefined) return new Promise(() => {})
        controller.enqueue(value.subarray(0, bytesLeft))
        bytesLeft -= value.length
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return new Response(stalled, { status, statusText, headers })
}

async function unlessAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  result.catch(() => {})
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
  })
  return Promise.race([result, aborted]).finally(() => signal.removeEventListener('abort', abort))
}
