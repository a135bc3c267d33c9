/**
 * The header of an append with a producer or a `streamSeq`, and of its response (docs/protocol.md
 * "Producers"). Other servers ignore it, and their responses do not have it.
 */
export const APPEND_HEADER = 'headwater-append'

/** What the header of a response says about the append. */
export type AppendHeaderReply = 'stored' | 'duplicate'
