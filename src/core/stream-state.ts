import type { StreamPosition, StreamTail } from '../model/position.ts'
import type { Command } from '../model/record.ts'

/** The state of a stream that decides about appends. */
export interface StreamState {
  /** The position of the next record, and the timestamp of the last one. */
  readonly tail: StreamPosition
  /** Records below it are trimmed. */
  readonly trimPoint: number
  /** `''` when the stream is not fenced. */
  readonly fencingToken: string
  /** Absent while no append has set any of it. */
  readonly writeState?: WriteState | undefined
}

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

/**
 * Applies a command whose record has the sequence number `seqNum` (docs/protocol.md "Command records"). A
 * trim removes at most the records up to and including the command itself, and never moves the trim point
 * back.
 */
export function applyCommand(state: StreamState, command: Command, seqNum: number): StreamState {
  if (command.kind === 'fence') return { ...state, fencingToken: command.token }
  if (command.kind === 'close') return { ...state, writeState: { ...state.writeState, closed: true } }
  const trimPoint = Math.min(command.seqNum, seqNum + 1)
  return trimPoint > state.trimPoint ? { ...state, trimPoint } : state
}

/** The tail as callers receive it. */
export function streamTailOf({ tail, writeState }: Pick<StreamState, 'tail' | 'writeState'>): StreamTail {
  return writeState?.closed ? { ...tail, closed: true } : tail
}
