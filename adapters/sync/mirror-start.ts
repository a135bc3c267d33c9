import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { assertMembers, type Check, type MembersOf, unchecked } from '../../src/model/validation.ts'

/** The start of a mirror: the start of a read. */
export type MirrorStart = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

const START: MembersOf<MirrorStart> = { seqNum: unchecked, timestamp: unchecked, tailOffset: unchecked }

/** Throws `invalid` for a start that is not valid. */
export const assertStart: Check = (value, field) => {
  assertMembers(value, START, field, `${field}.`)
  assertReadQuery(value as MirrorStart)
}
