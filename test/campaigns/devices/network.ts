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
  readonly responseLost: number
  readonly duplicated: number
  /** Responses of which the client gets only a part. */
  readonly cut: number
  readonly delayMs: number
  readonly lateMs: number
}

export const HEALTHY: NetworkRates = {
  lost: 0,
  late: 0,
  responseLost: 0,
  duplicated: 0,
  cut: 0,
  delayMs: 5,
  lateMs: 0,
}

/** The most bytes that arrive of a response that is cut. */
const PART_BYTES_MAX = 2_000

/** Returns the request with another body, so that it can be delivered more than once. */
type WithBody = (body: BodyInit | null, signal?: AbortSignal) => Request

/**
 * The network between one device and a server. It loses, delays, duplicates and reorders requests,
 * delivers lost ones late, loses and cuts responses, and can be disconnected.
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
    this.#clock = clock
    this.#prng = prng
    this.#handlerOf = handlerOf
    this.#admits = admits
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
    request.signal.throwIfAborted()
    const exchange = new AbortController()
    const giveUp = () => exchange.abort(request.signal.reason)
    request.signal.addEventListener('abort', giveUp, { once: true })
    this.#exchanges.add(exchange)
    const end = () => {
      request.signal.removeEventListener('abort', giveUp)
      this.#exchanges.delete(exchange)
    }
    const { url, method, headers } = request
    const withBody: WithBody = (part, signal) =>
      new Request(url, {
        method,
        headers,
        body: part,
        duplex: 'half',
        ...(signal && { signal }),
      } as RequestInit)
    try {
      return await this.#exchange(body, withBody, exchange.signal, end)
    } catch (error) {
      end()
      throw error
    }
  }

  async #exchange(
    body: Uint8Array<ArrayBuffer> | null,
    withBody: WithBody,
    signal: AbortSignal,
    end: () => void,
  ): Promise<Response> {
    const { lost, late, responseLost, duplicated, cut, delayMs, lateMs } = this.rates
    const prng = this.#prng
    await this.#pause(prng.below(delayMs + 1), signal)
    const isLost = prng.chance(lost)
    if (prng.chance(isLost ? late : duplicated)) this.#deliverLater(withBody(body), lateMs)
    if (isLost) throw fetchFailed('ECONNRESET', 'the request was lost')
    const handler = this.#handlerOf()
    if (handler === undefined) throw fetchFailed('ECONNREFUSED', 'the server is down')
    const response = await unlessAborted(handler(withBody(body, signal)), signal)
    await this.#pause(prng.below(delayMs + 1), signal)
    if (prng.chance(responseLost)) {
      response.body?.cancel().catch(() => {})
      throw fetchFailed('ECONNRESET', 'the response was lost')
    }
    const isCut = prng.chance(cut) && {
      cut: { afterBytes: prng.below(PART_BYTES_MAX), error: terminated('the response was cut') },
    }
    return relayedResponse(response, { signal, onEnd: end, ...isCut })
  }

  /** Delivers a request of which the client knows nothing any more. */
  #deliverLater(request: Request, lateMs: number): void {
    this.#clock.schedule(this.#prng.below(lateMs + 1), () => {
      const handler = this.#handlerOf()
      if (handler !== undefined) deliver(handler, request)
    })
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (delayMs === 0) return
    let cancel = () => {}
    const pause = new Promise<void>((resolve) => {
      cancel = this.#clock.schedule(delayMs, resolve)
    })
    await unlessAborted(pause, signal).finally(cancel)
  }
}

/** Delivers a request whose response goes nowhere. */
function deliver(handler: Handler, request: Request): void {
  handler(request)
    .then((response) => response.body?.cancel())
    .catch(() => {})
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
