import { assertOptions } from '../../../src/model/validation.ts'
import { FAULT_POINT, FaultLog, type FaultPoint, FaultPoints } from '../faults/planned-faults.ts'

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

/** An injected fault. `call` counts the requests, from 1. */
export type HandlerFault = { readonly call: number; readonly method: string; readonly path: string } & (
  | { readonly fault: 'refused' | 'dropped' | 'response lost' | 'duplicated' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | { readonly fault: 'responded'; readonly status: number }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }
)

export type PlannedRequestFault =
  | { readonly fault: 'refuse' | 'drop' | 'loseResponse' | 'duplicate' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | {
      readonly fault: 'respond'
      readonly status: number
      readonly code: string
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }

/** The faults of one request. */
export interface RequestInjection {
  /** The delay of the request. */
  readonly holdMs: number
  /** The delay of the response. */
  readonly responseHoldMs: number
  /** The first one that was planned. */
  readonly fault: Exclude<PlannedRequestFault, { fault: 'delay' }> | undefined
}

/** Decides the faults of each request. Counts requests and logs faults. */
export class HandlerFaultPlan {
  readonly log = new FaultLog<HandlerFault>()
  readonly #points = new FaultPoints<[request: Request], PlannedRequestFault>()
  #calls = 0

  add(fault: PlannedRequestFault, point: RequestPoint): void {
    assertOptions(point, FAULT_POINT)
    this.#points.add(fault, point)
  }

  heal(): void {
    this.#points.clear()
  }

  injectionOf(request: Request): RequestInjection {
    const call = ++this.#calls
    let [holdMs, responseHoldMs] = [0, 0]
    let fault: RequestInjection['fault']
    for (const planned of this.#points.matching(request)) {
      if (planned.fault !== 'delay') fault ??= planned
      else if (planned.after) responseHoldMs += planned.delayMs
      else holdMs += planned.delayMs
    }
    const injection = { holdMs, responseHoldMs, fault }
    const { method } = request
    for (const entry of entriesOf(injection)) {
      this.log.add({ call, method, path: new URL(request.url).pathname, ...entry } as HandlerFault)
    }
    return injection
  }
}

const LOGGED = {
  refuse: 'refused',
  drop: 'dropped',
  loseResponse: 'response lost',
  duplicate: 'duplicated',
} as const

function entriesOf({ holdMs, responseHoldMs, fault }: RequestInjection): object[] {
  const entries: object[] = []
  if (holdMs > 0) entries.push({ fault: 'delay', delayMs: holdMs, after: false })
  if (fault?.fault === 'cut') entries.push(fault)
  else if (fault?.fault === 'respond') entries.push({ fault: 'responded', status: fault.status })
  else if (fault !== undefined) entries.push({ fault: LOGGED[fault.fault] })
  if (responseHoldMs > 0) entries.push({ fault: 'delay', delayMs: responseHoldMs, after: true })
  return entries
}
