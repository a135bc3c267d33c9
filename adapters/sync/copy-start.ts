import type { Stream } from '../../src/api/stream.ts'
import { type MirrorStart, startQuery } from './start-query.ts'

/** Resolves to the sequence number with which a copy begins: that of a record, or of the tail. */
export async function copyStart(remote: Stream, from: MirrorStart): Promise<number> {
  const cursor = await remote.openCursor(startQuery(from), { heartbeats: true, allowsEmpty: 'always' })
  try {
    const event = await cursor?.next()
    if (event?.kind === 'batch') return event.batch.records[0]!.seqNum
    return event?.tail.seqNum ?? 0
  } finally {
    cursor?.close()
  }
}
