import type { Stream } from '../../src/api/stream.ts'
import { type HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError, backOffMs } from '../../src/sync/failures.ts'
import type { SenderState } from '../../src/sync/outbox.ts'
import type { WakeUps } from './page-events.ts'

/** The environment of the pauses of an outbox. */
export interface PauseContext {
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly onState: (state: SenderState) => void
}

/**
 * Waits for a number of milliseconds, or forever if it is undefined. The signal, and the callback that
 * `listen` registers, end the pause earlier.
 */
export function pauseUntil(
  clock: Clock,
  ms: number | undefined,
  signal: AbortSignal,
  listen: (end: () => void) => () => void = () => () => {},
): Promise<void> {
  return new Promise((resolve) => {
    const ends: (() => void)[] = []
    const end = () => {
      for (const cancel of ends) cancel()
      resolve()
    }
    if (ms !== undefined) ends.push(clock.schedule(ms, end, { background: true }))
    ends.push(listen(end))
    ends.push(onAbort(signal, end))
  })
}

/** Reports a failure as the state `offline`, and waits longer after each failure in succession. */
export async function pauseAfter(
  error: HeadwaterError,
  failures: number,
  { clock, random, wakeUps, onState }: PauseContext,
  signal: AbortSignal,
): Promise<void> {
  const ms = backOffMs(failures, random(), error.retryAfterMs)
  onState({ kind: 'offline', error, nextAttemptAt: clock.now() + ms })
  // A server that says when is left alone until then.
  await pauseUntil(clock, ms, signal, error.retryAfterMs === undefined ? wakeUps : undefined)
}

/** Repeats work with pauses until it succeeds, fails permanently, or the signal aborts. */
export async function withRetries<Result>(
  work: () => Promise<Result>,
  context: PauseContext,
  signal: AbortSignal,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    try {
      return await work()
    } catch (thrown) {
      const error = asHeadwaterError(thrown)
      if (!error.retryable) throw error
      await pauseAfter(error, failures, context, signal)
      signal.throwIfAborted()
    }
  }
}

/** Resolves to the tail of a stream, or to 0 if the stream does not exist. */
export async function tailOrZero(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}
