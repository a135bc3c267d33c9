import type { Stream } from '../../src/api/stream.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { MirrorStart } from './mirror-start.ts'

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
