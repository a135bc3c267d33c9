import type { ReadQuery } from '../../src/model/read-query.ts'

/** Where a mirror begins: the start of a read. */
export type MirrorStart = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

/** Returns the query of a read from where a copy begins, without an end. */
export function startQuery(from: MirrorStart) {
  const isGiven = Object.values(from).some((value) => value !== undefined)
  return { ...(isGiven ? from : { seqNum: 0 }), clamp: true, waitMs: Number.POSITIVE_INFINITY }
}
