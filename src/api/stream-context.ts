import type { SharedSignal } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Reservation } from './append-session.ts'

/** The clock and limits of the methods that a stream builds on its others. */
export interface StreamContext {
  /** Reserves memory for an append. Throws `rate_limited`. */
  readonly reserve: (meteredBytes: number) => Reservation
  readonly clock: Clock
  readonly closing: SharedSignal
}
