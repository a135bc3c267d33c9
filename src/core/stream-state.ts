import type { StreamPosition } from '../model/position.ts'

/** What deciding about an append needs to know of a stream. */
export interface StreamState {
  /** Where the next record goes, and the timestamp of the last one. */
  readonly tail: StreamPosition
  /** Records below are trimmed. */
  readonly trimPoint: number
  /** `''` when the stream is not fenced. */
  readonly fencingToken: string
}
