import type { Stream } from '../../src/api/stream.ts'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { assertMembers, type Check, type MembersOf, unchecked } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'

/** Where a mirror begins: the start of a read. */
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

/** Resolves to the sequence number with which a copy begins: that of a record, or of the tail. */
export async function copyStart(remote: Stream, from: MirrorStart, signal: AbortSignal): Promise<number> {
  const opening = remote.openCursor(startQuery(from), { heartbeats: true, allowsEmpty: 'always' })
  const cursor = await unlessAborted(signal, opening, (late) => late?.close())
  try {
    const event = await unlessAborted(signal, Promise.resolve(cursor?.next()))
    if (event?.kind === 'batch') return event.batch.records[0]!.seqNum
    return event?.tail.seqNum ?? 0
  } finally {
    cursor?.close()
  }
}
