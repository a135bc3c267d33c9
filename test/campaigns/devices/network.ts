import { type FaultyHandler, faultyHandler } from '../../../adapters/testing/index.ts'
import { fetchFailed, relayedResponse } from '../../../adapters/testing/relayed-response.ts'
import type { Clock } from '../../../src/index.ts'
import { unlessAborted } from '../../../src/runtime/abort.ts'
import type { Prng } from '../../../src/runtime/random.ts'
import { type HandlerRates, requestFaultsAtRandom } from '../../support/random-faults.ts'

type Handler = (request: Request) => Promise<Response>

export interface NetworkRates extends HandlerRates {
  /** The chance of a request, from 0 to 1, to arrive once more, whatever becomes of it. */
  readonly late: number
  /** How much later it arrives at most, in milliseconds: the client may have given up on it. */
  readonly lateMs: number
}

export const HEALTHY: NetworkRates = { delay: [0, 5], late: 0, lateMs: 0 }

/**
 * The network between one device and a server. It has the faults of `faultyHandler`, delivers requests again
 * when the client knows nothing of them any more, and can be disconnected.
 */
export class SimulatedNetwork {
  readonly #clock: Clock
  readonly #prng: Prng
  readonly #handler: FaultyHandler
  readonly #admits: () => boolean
  readonly #exchanges = new Set<AbortController>()
  #late = HEALTHY
  #isConnected = true

  /**
   * `handlerOf` returns undefined while the server is down. A request that `admits` does not admit waits
   * until the client gives up on it, so that no number of them takes long.
   */
  constructor(clock: Clock, prng: Prng, handlerOf: () => Handler | undefined, admits: () => boolean) {
    this.#clock = clock
    this.#prng = prng
    this.#admits = admits
    const deliver = async (request: Request) => {
      const handler = handlerOf()
      if (handler === undefined) throw fetchFailed('ECONNREFUSED', 'the server is down')
      return handler(request)
    }
    this.#handler = faultyHandler(deliver, { clock })
  }

  set rates(rates: NetworkRates) {
    const { late: _, lateMs: __, ...faults } = rates
    this.#late = rates
    this.#handler.heal()
    requestFaultsAtRandom(this.#handler, this.#prng.below(2 ** 31), faults)
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
    if (!this.#admits()) return unlessAborted(request.signal, new Promise<never>(() => {}))
    if (!this.#isConnected) throw fetchFailed('ECONNREFUSED', 'offline')
    request.signal.throwIfAborted()
    const { late, lateMs } = this.#late
    if (this.#prng.chance(late)) this.#deliverLater(copyOf(request, body), lateMs)
    const exchange = new AbortController()
    const giveUp = () => exchange.abort(request.signal.reason)
    request.signal.addEventListener('abort', giveUp, { once: true })
    this.#exchanges.add(exchange)
    const end = () => {
      request.signal.removeEventListener('abort', giveUp)
      this.#exchanges.delete(exchange)
    }
    const { signal } = exchange
    try {
      const response = await unlessAborted(signal, this.#handler(copyOf(request, body, signal)))
      return relayedResponse(response, { signal, onEnd: end })
    } catch (error) {
      end()
      throw error
    }
  }

  #deliverLater(request: Request, lateMs: number): void {
    this.#clock.schedule(this.#prng.below(lateMs + 1), () => {
      this.#handler(request)
        .then((response) => response.body?.cancel())
        .catch(() => {})
    })
  }
}

function copyOf(
  { url, method, headers }: Request,
  body: Uint8Array<ArrayBuffer> | null,
  signal?: AbortSignal,
): Request {
  const init = { method, headers, body, duplex: 'half', ...(signal && { signal }) }
  return new Request(url, init as RequestInit)
}
