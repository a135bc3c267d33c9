import {
  assertMembers,
  assertOptions,
  listOf,
  type MembersOf,
  unchecked,
} from '../../../src/model/validation.ts'
import { FAULT_POINT, FaultLog, type FaultPoint, FaultPoints } from '../faults/planned-faults.ts'
import {
  chanceOf,
  checkDelay,
  checkProbabilities,
  type DelayRange,
  delayMsOf,
  drawOne,
} from '../faults/random-faults.ts'

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

/** The probabilities of faults for each request, from 0 to 1, with a sum of at most 1. */
export interface HandlerRates {
  /** That the connection is refused, and it certainly does not arrive. */
  readonly refuse?: number | undefined
  /** That it never arrives, and its connection is reset. */
  readonly drop?: number | undefined
  /** That it never arrives, and gets the response 503 `unavailable`. */
  readonly unavailable?: number | undefined
  /** That it arrives twice, and the client gets the second response. */
  readonly duplicate?: number | undefined
  /** That it is handled, and the connection is reset before the response. */
  readonly loseResponse?: number | undefined
  /** That the body of the response fails after up to 1,000 bytes. */
  readonly cut?: number | undefined
  /** The delay of the request or of its response, with equal probability. Independent of the other faults. */
  readonly delay?: DelayRange | undefined
}

/** An injected fault. `call` counts the requests, from 1. */
export type HandlerFault = { readonly call: number; readonly method: string; readonly path: string } & (
  | { readonly fault: 'refused' | 'dropped' | 'response lost' | 'duplicated' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | { readonly fault: 'responded'; readonly status: number }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }
)

const CUT_BYTES_MAX = 1_000
const RATES: MembersOf<HandlerRates> = {
  refuse: 'number',
  drop: 'number',
  unavailable: 'number',
  duplicate: 'number',
  loseResponse: 'number',
  cut: 'number',
  delay: listOf(unchecked),
}

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
  /** The first planned fault, or else a random one. */
  readonly fault: Exclude<PlannedRequestFault, { fault: 'delay' }> | undefined
}

/**
 * Decides the faults of each request: the planned ones, then random ones. Counts requests and logs faults.
 */
export class HandlerFaultPlan {
  readonly log = new FaultLog<HandlerFault>()
  readonly #seed: number
  readonly #points = new FaultPoints<[request: Request], PlannedRequestFault>()
  #calls = 0
  #rates: HandlerRates = {}

  constructor(seed: number) {
    this.#seed = seed
  }

  get rates(): HandlerRates {
    return this.#rates
  }

  set rates(rates: HandlerRates) {
    assertMembers(rates, RATES, 'rates', 'rates.')
    const { delay, ...probabilities } = rates
    checkProbabilities('rates', probabilities)
    checkDelay('rates', delay)
    this.#rates = rates
  }

  add(fault: PlannedRequestFault, point: RequestPoint): void {
    assertOptions(point, FAULT_POINT)
    this.#points.add(fault, point)
  }

  heal(): void {
    this.#points.clear()
    this.#rates = {}
  }

  injectionOf(request: Request): RequestInjection {
    const call = ++this.#calls
    const faults = [...this.#points.matching(request), ...this.#byChance(call)]
    let [holdMs, responseHoldMs] = [0, 0]
    let fault: RequestInjection['fault']
    for (const candidate of faults) {
      if (candidate.fault !== 'delay') fault ??= candidate
      else if (candidate.after) responseHoldMs += candidate.delayMs
      else holdMs += candidate.delayMs
    }
    const injection = { holdMs, responseHoldMs, fault }
    const { method } = request
    for (const entry of entriesOf(injection)) {
      this.log.add({ call, method, path: new URL(request.url).pathname, ...entry } as HandlerFault)
    }
    return injection
  }

  #byChance(call: number): PlannedRequestFault[] {
    const { refuse, drop, unavailable, duplicate, loseResponse, cut, delay } = this.#rates
    const chance = chanceOf(this.#seed, 'request', call)
    const fault = drawOne(chance, { refuse, drop, unavailable, duplicate, loseResponse, cut })
    const afterBytes = chance.below(CUT_BYTES_MAX)
    const after = chance.chance(0.5)
    const delayMs = delayMsOf(delay, chance)
    const faults: PlannedRequestFault[] = []
    if (fault === 'cut') faults.push({ fault, afterBytes })
    else if (fault === 'unavailable')
      faults.push({ fault: 'respond', status: 503, code: 'unavailable', headers: {} })
    else if (fault !== undefined) faults.push({ fault })
    if (delayMs > 0) faults.push({ fault: 'delay', delayMs, after })
    return faults
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
