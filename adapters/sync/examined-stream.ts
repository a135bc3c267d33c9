import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { Confirmation } from '../../src/sync/outbox-log.ts'
import { type PauseContext, pauseUntil } from './pause.ts'
import { mismatchedCopyError } from './tails.ts'

/** How long the sender waits for the copy before it reads again, in milliseconds. */
const COPY_WAIT_MS = 10_000

/**
 * Throws `unavailable` if an attempt in doubt would be followed by one at another position. Until its mirror
 * is live, the copy may be of a stream that was deleted, and not have what the server has stored.
 */
export function assertSamePosition(position: number, inDoubtFrom: number): void {
  if (position === inDoubtFrom) return
  throw mismatchedCopyError()
}

/** Waits until a copy has records from a sequence number on. Resolves to false if 10 seconds pass before. */
export async function waitForCopy(
  copy: Stream,
  seqNum: number,
  { clock, wakeUps }: PauseContext,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const query = { seqNum, clamp: true, waitMs: COPY_WAIT_MS }
    return (await copy.readBatch(query, { as: 'bytes', signal })).records.length > 0
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    await pauseUntil(clock, COPY_WAIT_MS, signal, wakeUps)
    return false
  }
}

/** Resolves to whether a copy has any record where the server has stored those of an append. */
export async function hasRecordIn(
  copy: Stream,
  { start, end }: Confirmation,
  signal: AbortSignal,
): Promise<boolean> {
  const query = { seqNum: start.seqNum, count: 1, clamp: true }
  const [record] = await copy.read(query, { as: 'bytes', signal }).toArray()
  return record !== undefined && record.seqNum < end.seqNum
}
