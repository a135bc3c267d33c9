import type { HeadwaterError } from '../../../src/model/errors.ts'
import type { StreamPosition } from '../../../src/model/position.ts'
import type { ReadQuery } from '../../../src/model/read-query.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { Connection } from '../connection.ts'
import type { CurlTarget } from '../snippets.ts'

/** The first record of a tail. */
export type Start = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

/** The events that a follower reports. */
interface FollowEvents {
  onRecords(records: readonly SequencedRecord[]): void
  /** The tail as far as known: records before it may still follow. */
  onTail(tail: StreamPosition): void
  /** A lost connection, which is opened again after a delay in milliseconds. */
  onReconnect(error: HeadwaterError, delayMs: number): void
}

/** Reading gives way to the page this often. */
const WORK_MS = 12

/** Follows a stream until the signal aborts. Rejects with an error that would recur. */
export async function follow(
  connection: Connection,
  { basin, stream, encryptionKey }: CurlTarget,
  start: Start,
  { onRecords, onTail, onReconnect }: FollowEvents,
  signal: AbortSignal,
): Promise<void> {
  const handle = connection.reconnecting(onReconnect).basin(basin).stream(stream, { encryptionKey })
  let workSince = performance.now()
  for await (const event of handle.follow(start, { as: 'bytes', signal }).events()) {
    const { tail } = event.kind === 'batch' ? event.batch : event
    if (event.kind === 'batch') onRecords(event.batch.records)
    if (tail !== undefined) onTail(tail)
    workSince = await yieldToPage(workSince)
  }
}

/** Gives way to the page if the work has lasted too long. Resolves to when the work began. */
export async function yieldToPage(workSince: number): Promise<number> {
  if (performance.now() - workSince <= WORK_MS) return workSince
  await new Promise((resolve) => setTimeout(resolve))
  return performance.now()
}

/**
 * An offset from the tail as a sequence number, by the first tail that is known: a later read would count
 * from a later tail, and miss the records between.
 */
export function fixedStart(start: Start, tail: StreamPosition): Start {
  if (start.tailOffset === undefined) return start
  return { seqNum: Math.max(0, tail.seqNum - start.tailOffset) }
}
