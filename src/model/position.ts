/** A place in a stream (service-interface.md "Stream position"). */
export interface StreamPosition {
  /** Sequence number that the next record gets, or that a record has. */
  readonly seqNum: number
  /** Timestamp of the record before `seqNum` (a tail) or of the record at `seqNum` (the start of an ack). */
  readonly timestamp: number
}

/** The tail of a stream that never held a record. */
export const STREAM_START: StreamPosition = Object.freeze({ seqNum: 0, timestamp: 0 })
