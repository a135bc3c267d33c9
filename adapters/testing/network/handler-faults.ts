import type { DelayRange } from '../faults/chance.ts'
import type { FaultPoint } from '../faults/fault-points.ts'

/** Which requests a fault meets: all that come from now on, until `heal()`, unless this says which. */
export type RequestPoint = FaultPoint<[request: Request]>

export interface AnswerOptions extends RequestPoint {
  /** Of the error in the body; `unavailable` by default. */
  readonly code?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface RequestDelayOptions extends RequestPoint {
  /** The request arrives at once, and its answer comes late. Without this the request itself is held back. */
  readonly after?: boolean
}

/** What happens by chance to each request. Probabilities are from 0 to 1, and at most 1 together. */
export interface HandlerRates {
  readonly refuse?: number
  readonly drop?: number
  readonly unavailable?: number
  readonly duplicate?: number
  readonly loseAnswer?: number
  /** That the body of its answer breaks off, behind up to 1,000 bytes. */
  readonly cut?: number
  /** How long it is held back, or its answer: one or the other, evenly. Of its own, not exclusive of the others. */
  readonly delay?: DelayRange
}

/** One fault that was injected. `call` counts the requests, from 1. */
export type HandlerFault = { readonly call: number; readonly method: string; readonly path: string } & (
  | { readonly fault: 'refused' | 'dropped' | 'answer lost' | 'duplicated' }
  | { readonly fault: 'cut'; readonly afterBytes: number }
  | { readonly fault: 'answered'; readonly status: number }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }
)
