/**
 * The header of an append with a producer or a `streamSeq`, and of its response (docs/protocol.md
 * "Producers"). Other servers ignore it, and their responses do not have it.
 */
export const APPEND_HEADER = 'headwater-append'

/** The value of the header of a response: how the batch was stored. */
export type AppendHeaderReply = 'stored' | 'duplicate'
