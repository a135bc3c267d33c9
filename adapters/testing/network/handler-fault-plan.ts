import { chanceOf } from '../faults/chance.ts'
import { FaultLog } from '../faults/fault-log.ts'
import { FaultPoints } from '../faults/fault-points.ts'
import { checkDelay, checkNames, checkProbabilities, delayMsOf, drawn } from '../faults/rates.ts'
import type { HandlerFault, HandlerRates, RequestPoint } from './handler-faults.ts'

const CUT_BYTES_MAX = 1_000
const RATES = ['refuse', 'drop', 'unavailable', 'duplicate', 'loseAnswer', 'cut', 'delay']

export type PlannedRequestFault =
  | { readonly fault: 'refuse' | 'drop' | 'loseAnswer' | 'duplicate' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | {
      readonly fault: 'answer'
      readonly status: number
      readonly code: string
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }

/** What happens to one request. */
export interface RequestInjection {
  readonly holdMs: number
  readonly answerHoldMs: number
  /** At most one. */
  readonly fault: Exclude<PlannedRequestFault, { fault: 'delay' }> | undefined
}

/** Decides what happens to which request: what was planned for it, then chance. Counts the requests, and logs what it decided. */
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
    const { delay, ...probabilities } = rates
    checkNames('rates', rates, RATES)
    checkProbabilities('rates', probabilities)
    checkDelay('rates', delay)
    this.#rates = rates
  }

  add(fault: PlannedRequestFault, point: RequestPoint): void {
    this.#points.add(fault, point)
  }

  heal(): void {
    this.#points.clear()
    this.#rates = {}
  }

  injectionOf(request: Request): RequestInjection {
    const call = ++this.#calls
    const faults = [...this.#points.meeting(request), ...this.#byChance(call)]
    let [holdMs, answerHoldMs] = [0, 0]
    let fault: RequestInjection['fault']
    for (const one of faults) {
      if (one.fault !== 'delay') fault ??= one
      else if (one.after) answerHoldMs += one.delayMs
      else holdMs += one.delayMs
    }
    const injection = { holdMs, answerHoldMs, fault }
    const { method } = request
    for (const entry of entriesOf(injection)) {
      this.log.add({ call, method, path: new URL(request.url).pathname, ...entry } as HandlerFault)
    }
    return injection
  }

  #byChance(call: number): PlannedRequestFault[] {
    const { refuse, drop, unavailable, duplicate, loseAnswer, cut, delay } = this.#rates
    const chance = chanceOf(this.#seed, 'request', call)
    const fault = drawn(chance, { refuse, drop, unavailable, duplicate, loseAnswer, cut })
    const afterBytes = chance.below(CUT_BYTES_MAX)
    const after = chance.chance(0.5)
    const delayMs = delayMsOf(delay, chance)
    const faults: PlannedRequestFault[] = []
    if (fault === 'cut') faults.push({ fault, afterBytes })
    else if (fault === 'unavailable')
      faults.push({ fault: 'answer', status: 503, code: 'unavailable', headers: {} })
    else if (fault !== undefined) faults.push({ fault })
    if (delayMs > 0) faults.push({ fault: 'delay', delayMs, after })
    return faults
  }
}

const LOGGED = {
  refuse: 'refused',
  drop: 'dropped',
  loseAnswer: 'answer lost',
  duplicate: 'duplicated',
} as const

function entriesOf({ holdMs, answerHoldMs, fault }: RequestInjection): object[] {
  const entries: object[] = []
  if (holdMs > 0) entries.push({ fault: 'delay', delayMs: holdMs, after: false })
  if (fault?.fault === 'cut') entries.push(fault)
  else if (fault?.fault === 'answer') entries.push({ fault: 'answered', status: fault.status })
  else if (fault !== undefined) entries.push({ fault: LOGGED[fault.fault] })
  if (answerHoldMs > 0) entries.push({ fault: 'delay', delayMs: answerHoldMs, after: true })
  return entries
}
