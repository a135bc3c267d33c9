import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/sync/errors.ts'
import { type PauseContext, pauseUntil } from './pause.ts'

/** How long the sender waits for the copy to reach a position, before it tries again, in milliseconds. */
const COPY_WAIT_MS = 10_000

/** Resolves to the tail of a stream, which is 0 while there is none. */
export async function tailOrStart(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}

/** Waits until a copy has records from a sequence number on, at most 10 seconds. */
export async function recordsCopied(
  copy: Stream,
  seqNum: number,
  { clock, wakeUps }: PauseContext,
  signal: AbortSignal,
): Promise<void> {
  try {
    await copy.readBatch({ seqNum, clamp: true, waitMs: COPY_WAIT_MS }, { as: 'bytes', signal })
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    await pauseUntil(clock, COPY_WAIT_MS, signal, wakeUps)
  }
}
