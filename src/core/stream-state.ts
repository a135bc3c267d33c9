import type { StreamPosition, StreamTail } from '../model/position.ts'
import type { Command } from '../model/record.ts'
import type { WriteState } from './write-state.ts'

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
