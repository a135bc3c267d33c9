import { invalid } from '../../src/model/errors.ts'
import {
  assertInteger,
  assertOptions,
  hasMethod,
  type MembersOf,
  unchecked,
} from '../../src/model/validation.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { FAULT_POINT, FaultPlan, type FaultPoint, Holds, type PlannedDelay } from './planned-faults.ts'
import { fetchFailed, relayedResponse, terminated } from './relayed-response.ts'
import { millisecondsIn } from './virtual-clock.ts'

/** A fetch handler: that of `headwater/http`, or an application that wraps it. */
export type Handler = (request: Request) => Response | Promise<Response>

/** Selects the requests that a fault affects. All from now on by default, until `heal()`. */
export type RequestPoint = FaultPoint<[request: Request]>

/** Which requests `respond` applies to, and what else the response has. */
export interface ResponseOptions extends RequestPoint {
  /** The code in the body. `unavailable` by default. */
  readonly code?: string | undefined
  /** Headers of the response. None by default. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Which requests `delay` applies to, and on which side. */
export interface RequestDelayOptions extends RequestPoint {
  /** Delays the response instead of the request. False by default. */
  readonly after?: boolean | undefined
}

type PlannedFault =
  | { readonly fault: 'refused' | 'dropped' | 'response lost' | 'duplicated' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | {
      readonly fault: 'responded'
      readonly status: number
      readonly code: string
      readonly headers: Readonly<Record<string, string>>
    }

/** An injected fault. `call` counts the requests, from 1. */
export type HandlerFault = { readonly call: number; readonly method: string; readonly path: string } & (
  | PlannedFault
  | PlannedDelay
)

/** Options of `faultyHandler`. */
export interface FaultyHandlerOptions {
  /** Measures delays. The system clock by default. */
  readonly clock?: Clock | undefined
}

/**
 * A handler behind an unreliable network. Faults without `nth` last until {@link heal}. A request is affected
 * by at most one fault, the first that was planned, and by every delay.
 *
 * Network failures reject as in `fetch`: with a `TypeError` whose cause has a `code`.
 */
export interface FaultyHandler {
  (request: Request): Promise<Response>
  /**
   * Refuses the connection (`ECONNREFUSED`): the request certainly has no effect, and every client may retry.
   */
  refuse(point?: RequestPoint): void
  /**
   * Resets the connection before the request arrives (`ECONNRESET`): its outcome is unknown to the client.
   */
  drop(point?: RequestPoint): void
  /**
   * Handles the request and resets the connection before the response. For the client the same as {@link
   * drop}.
   */
  loseResponse(point?: RequestPoint): void
  /** Fails the body of the response after so many bytes. A shorter body arrives completely. */
  cut(afterBytes: number, point?: RequestPoint): void
  /** Handles the request twice, in succession. The client gets the second response. */
  duplicate(point?: RequestPoint): void
  /** Responds with a status from 400 to 599 like a proxy, without handling the request. */
  respond(status: number, options?: ResponseOptions): void
  /**
   * Delays requests, or their responses, by milliseconds or by `'500ms'`, `'2s'`. An abort by the client ends
   * the delay.
   */
  delay(duration: number | string, options?: RequestDelayOptions): void
  /** Ends all faults, and releases delayed requests. */
  heal(): void
  /** The latest 10,000 injected faults. */
  readonly log: readonly HandlerFault[]
}

const FAULTY_HANDLER_OPTIONS: MembersOf<FaultyHandlerOptions> = {
  clock: hasMethod('now', 'a clock, such as `virtualClock()`'),
}
const DELAY_OPTIONS: MembersOf<RequestDelayOptions> = { ...FAULT_POINT, after: 'boolean' }
const RESPONSE_OPTIONS: MembersOf<ResponseOptions> = { ...FAULT_POINT, code: 'string', headers: unchecked }

/**
 * Wraps a handler in a {@link FaultyHandler}. Without faults it behaves like the handler.
 *
 * ```ts
 * const handler = faultyHandler(createHandler(hw, { auth: 'none' }))
 * handler.loseResponse({ nth: 2 })
 * handler.delay('2s')
 * const response = await handler(new Request('http://localhost/v1/basins'))
 * ```
 */
export function faultyHandler(handler: Handler, options: FaultyHandlerOptions = {}): FaultyHandler {
  assertOptions(options, FAULTY_HANDLER_OPTIONS)
  if (typeof handler !== 'function') throw invalid('faultyHandler needs a handler, a function', 'handler')
  const { clock = systemClock } = options
  const plan = new FaultPlan<PlannedFault, HandlerFault>()
  const holds = new Holds()
  /** Requests whose response is being cut. */
  const cutting = new Set<Request>()

  async function deliver(request: Request, fault: PlannedFault | undefined): Promise<Response> {
    switch (fault?.fault) {
      case 'refused':
        discard(request)
        throw fetchFailed('ECONNREFUSED', 'injected: the connection was refused')
      case 'dropped':
        discard(request)
        throw fetchFailed('ECONNRESET', 'injected: the request was dropped')
      case 'responded':
        discard(request)
        return Response.json(
          { code: fault.code, message: 'injected' },
          { status: fault.status, headers: fault.headers },
        )
      case 'duplicated': {
        const [first, second] = [request.clone(), request]
        try {
          discard(await handler(first))
        } catch {
          // The client sees only the second response.
        }
        request.signal.throwIfAborted()
        return handler(second)
      }
      case 'cut': {
        const response = await handler(request)
        const cut = { afterBytes: fault.afterBytes, error: terminated('injected: the response was cut') }
        cutting.add(request)
        return relayedResponse(response, {
          signal: request.signal,
          cut,
          onEnd: () => cutting.delete(request),
        })
      }
      default:
        return handler(request)
    }
  }

  async function handle(request: Request): Promise<Response> {
    const { method } = request
    const path = new URL(request.url).pathname
    const { fault, delayMs, resultDelayMs } = plan.next('request', [request], { method, path })
    const hold = holds.begin(clock)
    // Always read the signal from the request: in Node, the signal of a collected request never aborts.
    await hold(delayMs, request.signal)
    request.signal.throwIfAborted()
    const response = await deliver(request, fault)
    await hold(resultDelayMs, request.signal)
    if (request.signal.aborted) discard(response)
    request.signal.throwIfAborted()
    if (fault?.fault === 'response lost') {
      discard(response)
      throw fetchFailed('ECONNRESET', 'injected: the response was lost')
    }
    return response
  }

  function add(fault: PlannedFault | PlannedDelay, point: RequestPoint = {}): void {
    assertOptions(point, FAULT_POINT)
    plan.add('request', fault, point)
  }

  const controls: Pick<FaultyHandler, keyof FaultyHandler> = {
    refuse: (point) => add({ fault: 'refused' }, point),
    drop: (point) => add({ fault: 'dropped' }, point),
    loseResponse: (point) => add({ fault: 'response lost' }, point),
    cut(afterBytes, point) {
      assertInteger(afterBytes, 'afterBytes')
      add({ fault: 'cut', afterBytes }, point)
    },
    duplicate: (point) => add({ fault: 'duplicated' }, point),
    respond(status, options = {}) {
      assertOptions(options, RESPONSE_OPTIONS)
      const { code = 'unavailable', headers = {}, ...point } = options
      if (!(status >= 400 && status <= 599))
        throw invalid(`status must be from 400 to 599, not ${status}`, 'status')
      add({ fault: 'responded', status, code, headers }, point)
    },
    delay(duration, options = {}) {
      assertOptions(options, DELAY_OPTIONS)
      const { after = false, ...point } = options
      add({ fault: 'delay', delayMs: millisecondsIn(duration), after }, point)
    },
    heal() {
      plan.heal()
      holds.release()
    },
    get log() {
      return plan.logged
    },
  }
  return Object.defineProperties(handle, Object.getOwnPropertyDescriptors(controls)) as FaultyHandler
}

/** Cancels an unused body, so that its source can stop. */
function discard({ body }: Request | Response): void {
  // Fails for a body that is being read, which belongs to its reader.
  body?.cancel().catch(() => {})
}
