import { systemClock } from '../../../src/engine/system-clock.ts'
import type { Clock } from '../../../src/storage/clock.ts'
import { durationMs } from '../duration.ts'
import { Holds } from '../faults/holds.ts'
import { HandlerFaultPlan, type RequestInjection } from './handler-fault-plan.ts'
import type {
  AnswerOptions,
  HandlerFault,
  HandlerRates,
  RequestDelayOptions,
  RequestPoint,
} from './handler-faults.ts'
import { fetchFailed, terminated } from './network-errors.ts'
import { relayedResponse } from './relayed-response.ts'

/** Anything that answers a fetch `Request`: the handler of `headwater/http`, or an application that wraps it. */
export type Handler = (request: Request) => Response | Promise<Response>

export interface FaultyHandlerOptions {
  /** Decides what {@link FaultyHandler.rates} make happen; 1 by default. The same seed and the same requests: the same faults. */
  readonly seed?: number
  /** Faults by chance, from the first request on; none by default. */
  readonly rates?: HandlerRates
  /** What delays are measured by; the system's by default. */
  readonly clock?: Clock
}

/**
 * A handler behind a bad network. Faults that are planned without `nth` last until {@link heal}; one request meets at most one of them, the first planned, and every delay.
 *
 * What a network does to a request is told as `fetch` tells it: by a `TypeError` whose cause has a `code`.
 */
export interface FaultyHandler {
  (request: Request): Promise<Response>
  /** Nobody listens: the request certainly does not arrive (`ECONNREFUSED`), and every client may try again. */
  refuse(point?: RequestPoint): void
  /** The request never arrives, and its connection is reset (`ECONNRESET`): the client cannot know. */
  drop(point?: RequestPoint): void
  /** The request is handled, but the connection is reset before the head of its answer: to the client the same as {@link drop}. */
  loseAnswer(point?: RequestPoint): void
  /** The body of the answer fails behind so many bytes; a shorter one arrives whole. */
  cut(afterBytes: number, point?: RequestPoint): void
  /** The request arrives twice, one after the other; the client gets the second answer. */
  duplicate(point?: RequestPoint): void
  /** The request never arrives; it is answered with this status, from 400 to 599, as by a proxy. */
  answer(status: number, options?: AnswerOptions): void
  /** Requests, or their answers, come later by milliseconds or by `'500ms'`, `'2s'`. One that its client gives up is let go. */
  delay(duration: number | string, options?: RequestDelayOptions): void
  /** No more faults: what was planned is forgotten, {@link rates} are none, what is held back goes on. */
  heal(): void
  /** Faults by chance from now on; `RangeError` for what are no rates. */
  rates: HandlerRates
  /** What was injected, in its order: the latest 10,000. */
  readonly log: readonly HandlerFault[]
}

/** Puts faults between a handler and those who ask it, see {@link FaultyHandler}. */
export function faultyHandler(handler: Handler, options: FaultyHandlerOptions = {}): FaultyHandler {
  const { seed = 1, rates = {}, clock = systemClock } = options
  const plan = new HandlerFaultPlan(seed)
  plan.rates = rates
  const holds = new Holds()
  /** Requests of which the answer is on its way. */
  const cutting = new Set<Request>()

  async function delivered(request: Request, fault: RequestInjection['fault']): Promise<Response> {
    switch (fault?.fault) {
      case 'refuse':
        discard(request)
        throw fetchFailed('ECONNREFUSED', 'injected: the connection was refused')
      case 'drop':
        discard(request)
        throw fetchFailed('ECONNRESET', 'injected: the request was dropped')
      case 'answer': {
        discard(request)
        const { status, code, headers } = fault
        return Response.json({ code, message: 'injected' }, { status, headers })
      }
      case 'duplicate': {
        const [first, second] = [request.clone(), request]
        try {
          discard(await handler(first))
        } catch {
          // That answer is nobody's.
        }
        request.signal.throwIfAborted()
        return handler(second)
      }
      case 'cut': {
        const response = await handler(request)
        const cut = { afterBytes: fault.afterBytes, error: terminated('injected: the answer was cut') }
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

  async function answer(request: Request): Promise<Response> {
    const { holdMs, answerHoldMs, fault } = plan.injectionOf(request)
    const hold = holds.begin(clock)
    // The signal is asked of the request each time: one that nobody holds passes no abort on in Node.
    await hold(holdMs, request.signal)
    request.signal.throwIfAborted()
    const response = await delivered(request, fault)
    await hold(answerHoldMs, request.signal)
    if (request.signal.aborted) discard(response)
    request.signal.throwIfAborted()
    if (fault?.fault === 'loseAnswer') {
      discard(response)
      throw fetchFailed('ECONNRESET', 'injected: the answer was lost')
    }
    return response
  }

  const controls: Pick<FaultyHandler, keyof FaultyHandler> = {
    refuse: (point = {}) => plan.add({ fault: 'refuse' }, point),
    drop: (point = {}) => plan.add({ fault: 'drop' }, point),
    loseAnswer: (point = {}) => plan.add({ fault: 'loseAnswer' }, point),
    cut(afterBytes, point = {}) {
      if (!(Number.isSafeInteger(afterBytes) && afterBytes >= 0)) {
        throw new RangeError(`afterBytes must be a whole number from 0 on, not ${afterBytes}`)
      }
      plan.add({ fault: 'cut', afterBytes }, point)
    },
    duplicate: (point = {}) => plan.add({ fault: 'duplicate' }, point),
    answer(status, { code = 'unavailable', headers = {}, ...point } = {}) {
      if (!(status >= 400 && status <= 599))
        throw new RangeError(`status must be from 400 to 599, not ${status}`)
      plan.add({ fault: 'answer', status, code, headers }, point)
    },
    delay(duration, { after = false, ...point } = {}) {
      plan.add({ fault: 'delay', delayMs: durationMs(duration), after }, point)
    },
    heal() {
      plan.heal()
      holds.release()
    },
    get rates() {
      return plan.rates
    },
    set rates(next) {
      plan.rates = next
    },
    get log() {
      return plan.log.entries
    },
  }
  return Object.defineProperties(answer, Object.getOwnPropertyDescriptors(controls)) as FaultyHandler
}

/** Nobody reads this body: what makes it has to know. */
function discard({ body }: Request | Response): void {
  // One that is being read is its reader's.
  body?.cancel().catch(() => {})
}
