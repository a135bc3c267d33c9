import type { StreamPosition } from '../model/position.ts'

/**
 * The state left by appends that, besides the fencing token, decides about later appends. Absent members have
 * never been set: most streams have none. Persisted: keep stable.
 */
export interface WriteState {
  /** True once the stream is closed. */
  readonly closed?: true | undefined
  /** The producers in the order of their last appends, the latest last. At most `PRODUCERS_MAX`. */
  readonly producers?: readonly ProducerState[] | undefined
  /** That of the last append that had one. */
  readonly streamSeq?: string | undefined
}

/** The last batch of a producer. Persisted: keep stable. */
export interface ProducerState {
  /** The name of the producer. */
  readonly id: string
  /** The incarnation of the producer that appended last. */
  readonly epoch: number
  /** The number of the last batch. */
  readonly seq: number
  /** The time at which that batch was appended, in milliseconds. */
  readonly appendedAt: number
  /** The position of its first record. */
  readonly start: StreamPosition
  /** The sequence number after its last record, and the timestamp of that. */
  readonly end: StreamPosition
}
