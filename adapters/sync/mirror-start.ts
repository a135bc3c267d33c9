import type { Stream } from '../../src/api/stream.ts'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { assertMembers, type Check, type MembersOf, unchecked } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { comparedFrom, continuationOf, type FirstArrival } from '../../src/sync/copy-end.ts'
import type { LocalCopy } from './local-copy.ts'
import type { OutboxLog } from './outbox-log.ts'

/** The start of a mirror: the start of a read. */
export type MirrorStart = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

const START: MembersOf<MirrorStart> = { seqNum: unchecked, timestamp: unchecked, tailOffset: unchecked }

/** Throws `invalid` for a start that is not valid. */
export const assertStart: Check = (value, field) => {
  assertMembers(value, START, field, `${field}.`)
  assertReadQuery(value as MirrorStart)
}

/** Returns the query of a read from where a copy begins, without an end. */
export function startQuery(from: MirrorStart) {
  const isGiven = Object.values(from).some((value) => value !== undefined)
  return { ...(isGiven ? from : { seqNum: 0 }), clamp: true, waitMs: Number.POSITIVE_INFINITY }
}

/**
 * Deletes a copy and begins another one, unless the signal aborts before that. What the outbox has in doubt
 * is parked if the remote stream is another one now. Calls `replaced` afterwards, even if that failed: the
 * copy may be another one by then, or missing.
 */
export async function restartCopy(
  remote: Stream,
  from: MirrorStart,
  copy: LocalCopy,
  signal: AbortSignal,
  outboxLog: OutboxLog | undefined,
  replaced: () => void,
): Promise<void> {
  const { records, tail } = await firstArrival(remote, startQuery(from), signal)
  const start = records[0]?.seqNum ?? tail?.seqNum ?? 0
  signal.throwIfAborted()
  await copy.ensure()
  if (outboxLog !== undefined && !(await isContinued(copy, remote, signal))) {
    await outboxLog.eventually(() => outboxLog.device !== undefined, signal)
    await outboxLog.replaceStream(signal)
  }
  await copy.replace(start).finally(replaced)
}

/** Resolves to whether a remote stream continues a copy, rather than being another one. */
async function isContinued(copy: LocalCopy, remote: Stream, signal: AbortSignal): Promise<boolean> {
  const end = await copy.end()
  if (end.tail.seqNum === 0) return true
  const first = await firstArrival(remote, startQuery({ seqNum: comparedFrom(end) }), signal)
  return continuationOf(end, first).kind !== 'replaced'
}

async function firstArrival(
  remote: Stream,
  query: ReturnType<typeof startQuery>,
  signal: AbortSignal,
): Promise<FirstArrival> {
  const opening = remote.openCursor(query, { heartbeats: true, allowsEmpty: 'always' })
  const cursor = await unlessAborted(signal, opening, (late) => late?.close())
  try {
    const event = await unlessAborted(signal, Promise.resolve(cursor?.next()))
    return event?.kind === 'batch' ? event.batch : { records: [], tail: event?.tail }
  } finally {
    cursor?.close()
  }
}
