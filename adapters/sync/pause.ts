import type { HeadwaterError } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { backOffMs } from '../../src/sync/back-off.ts'
import type { SenderState } from '../../src/sync/outbox-plan.ts'
import type { WakeUps } from './page-events.ts'

/** What pauses of an outbox depend on. */
export interface PauseContext {
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: SenderState) => void
}

/** Resolves after a time in milliseconds, and earlier at a wake-up or when the signal aborts. */
export function pause(
  ms: number,
  { clock, wakeUps }: Pick<PauseContext, 'clock' | 'wakeUps'>,
  signal: AbortSignal,
): Promise<void> {
  let cancels: (() => void)[] = []
  const paused = new Promise<void>((resolve) => {
    cancels = [clock.schedule(ms, resolve, { background: true }), wakeUps(resolve), onAbort(signal, resolve)]
  })
  return paused.finally(() => {
    for (const cancel of cancels) cancel()
  })
}

/** Shows a failure, and waits until the next attempt after a number of failures in succession. */
export async function pauseAfter(
  error: HeadwaterError,
  failures: number,
  context: PauseContext,
  signal: AbortSignal,
): Promise<void> {
  const ms = backOffMs(failures, context.random())
  context.onState({ kind: 'offline', error, nextAttemptAt: context.clock.now() + ms })
  await pause(ms, context, signal)
}
