// A file of its own, because errors have a tail, and everything else of the model imports errors.

/** A position in a stream (docs/protocol.md "Stream position"). */
export interface StreamPosition {
  /** The sequence number of a record, or of the next record if the position is a tail. */
  readonly seqNum: number
  /** The timestamp of that record, or of the last one if the position is a tail or the end of an ack. */
  readonly timestamp: number
}

/** The tail of a stream, and whether the stream is closed. */
export interface StreamTail extends StreamPosition {
  /** True if the stream is closed: no record will follow. */
  readonly closed?: true | undefined
}

/** The tail of a stream without any records, past or present. */
export const STREAM_START: StreamPosition = Object.freeze({ seqNum: 0, timestamp: 0 })
