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

/**
 * The network between one device and a server. It loses, delays, duplicates and reorders requests, delivers
 * lost ones late, loses and cuts responses, and can be disconnected.
 */
export class SimulatedNetwork {
  readonly #clock: Clock
  readonly #prng: Prng
  readonly #handlerOf: () => Handler | undefined
  readonly #exchanges = new Set<AbortController>()
  rates: NetworkRates = HEALTHY
  #isConnected = true

  /** `handlerOf` returns undefined while the server is down. */
  constructor(clock: Clock, prng: Prng, handlerOf: () => Handler | undefined) {
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
    // The body can be delivered twice, and after the client has given up.
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer())
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
    const copy = (signal?: AbortSignal) =>
      new Request(request.url, {
        method: request.method,
        headers: request.headers,
        body,
        ...(signal && { signal }),
      })
    try {
      return await this.#exchange(copy, exchange, end)
    } catch (error) {
      end()
      throw error
    }
  }

  async #exchange(
    copy: (signal?: AbortSignal) => Request,
    { signal }: AbortController,
    end: () => void,
  ): Promise<Response> {
    const { lost, late, responseLost, duplicated, cut, delayMs, lateMs } = this.rates
    await this.#pause(this.#prng.below(delayMs + 1), signal)
    if (this.#prng.chance(lost)) {
      if (this.#prng.chance(late)) this.#deliverLater(copy(), lateMs)
      throw fetchFailed('ECONNRESET', 'the request was lost')
    }
    if (this.#prng.chance(duplicated)) this.#deliverLater(copy(), lateMs)
    const handler = this.#handlerOf()
    if (handler === undefined) throw fetchFailed('ECONNREFUSED', 'the server is down')
    const response = await unlessAborted(handler(copy(signal)), signal)
    await this.#pause(this.#prng.below(delayMs + 1), signal)
    if (this.#prng.chance(responseLost)) {
      response.body?.cancel().catch(() => {})
      throw fetchFailed('ECONNRESET', 'the response was lost')
    }
    const afterBytes = this.#prng.chance(cut) ? this.#prng.below(2_000) : undefined
    return relayedResponse(response, {
      signal,
      onEnd: end,
      ...(afterBytes !== undefined && { cut: { afterBytes, error: terminated('the response was cut') } }),
    })
  }

  /** Delivers a request of which the client knows nothing any more. Its response goes nowhere. */
  #deliverLater(request: Request, lateMs: number): void {
    this.#clock.schedule(this.#prng.below(lateMs + 1), () => {
      const handling = this.#handlerOf()?.(request)
      handling?.then((response) => response.body?.cancel()).catch(() => {})
    })
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
