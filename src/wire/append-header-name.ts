import { INTEGER_MAX } from '../model/limits.ts'

/**
 * The header of an append with a producer or a `streamSeq`, and of its response (docs/protocol.md
 * "Producers"). Other servers ignore it, and their responses do not have it.
 */
export const APPEND_HEADER = 'headwater-append'

/** The value of the header of a response: how the batch was stored. */
export type AppendHeaderReply = 'stored' | 'duplicate'

/**
 * The `match_seq_num` in the body of an append whose header has the condition that counts. No stream has this
 * tail, so a server that ignores the header rejects the append instead of storing it without a check.
 */
export const UNMATCHED_SEQ_NUM = INTEGER_MAX
