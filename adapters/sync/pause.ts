import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'

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

/** Resolves to the tail of a stream, or to 0 if the stream does not exist. */
export async function tailOrZero(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}
