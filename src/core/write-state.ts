import type { StreamPosition } from '../model/position.ts'

/**
 * What appends have left that decides about later ones, beside the fencing token. Absent members have never
 * been set: most streams have none. Persisted: keep stable.
 */
export interface WriteState {
  /** Set once the stream is closed. */
  readonly closed?: true | undefined
  /** In the order of their last appends, the latest last. At most `PRODUCERS_MAX`. */
  readonly producers?: readonly ProducerState[] | undefined
  /** That of the last append that had one. */
  readonly streamSeq?: string | undefined
}

/** What a stream knows of a producer. Persisted: keep stable. */
export interface ProducerState {
  /** The name of the producer. */
  readonly id: string
  /** The incarnation of the producer that appended last. */
  readonly epoch: number
  /** The number of the last batch. */
  readonly seq: number
  /** When it was appended, in milliseconds. */
  readonly appendedAt: number
  /** The position of its first record. */
  readonly start: StreamPosition
  /** The sequence number after its last record, and the timestamp of that. */
  readonly end: StreamPosition
}
