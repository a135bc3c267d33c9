import { type AnySignal, onAnyAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { IncomingResponse } from './transport.ts'

const FIRST_PAUSE_MS = 100
const PAUSE_MS_MAX = 5_000
/** Longer requests of a server to wait are cut to this. */
const RETRY_AFTER_MS_MAX = 30_000

/**
 * Milliseconds to wait before an attempt, the first repetition being 1: exponential back-off with full
 * jitter, and at least what the server asks for, up to 30 s. `random` is in [0, 1).
 */
export function pauseMs(repetition: number, retryAfterMs: number, random: number): number {
  const most = Math.min(FIRST_PAUSE_MS * 2 ** (repetition - 1), PAUSE_MS_MAX)
  return Math.max(Math.floor(most * random), Math.min(retryAfterMs, RETRY_AFTER_MS_MAX))
}

/** The pause that a response asks for, in milliseconds: `retry-after-ms`, or `retry-after`. */
export function retryAfterMsOf({ header }: Pick<IncomingResponse, 'header'>, now: number): number {
  const exact = Number(header('retry-after-ms') ?? Number.NaN)
  if (exact >= 0) return exact
  const text = header('retry-after')
  if (text === undefined) return 0
  const seconds = Number(text)
  const ms = Number.isNaN(seconds) ? Date.parse(text) - now : seconds * 1000
  return ms > 0 ? ms : 0
}

/** Waits. Rejects with the reason of the first signal that aborts. */
export function pause(clock: Clock, ms: number, signals: readonly (AnySignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let ignore = () => {}
    const cancel = clock.schedule(ms, () => {
      ignore()
      resolve()
    })
    ignore = onAnyAbort(signals, (reason) => {
      cancel()
      ignore()
      reject(reason)
    })
  })
}
