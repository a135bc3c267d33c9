import type { EngineStream } from '../../src/index.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { offsetOf, type StartOffset } from './offsets.ts'
import type { DescribedStream } from './state.ts'

/** Where a read begins. */
export interface ReadPosition {
  readonly stream: EngineStream
  readonly state: DescribedStream
  readonly seqNum: number
  /** Whether the client has named the position, so that it would miss records that are gone. */
  readonly isExact: boolean
}

/** Returns the position of a read. Throws 400 beyond the tail, 410 below what is left. */
export function readPositionOf(
  start: StartOffset,
  stream: EngineStream,
  state: DescribedStream,
): ReadPosition {
  const { tail, trimPoint } = state
  if (start === 'now') return { stream, state, seqNum: tail.seqNum, isExact: true }
  if (start === 'beginning') return { stream, state, seqNum: trimPoint, isExact: false }
  if (start > tail.seqNum) throw new DurableStreamsError(400, '`offset` is beyond the end of the stream')
  if (start < trimPoint) throw goneError(trimPoint)
  return { stream, state, seqNum: start, isExact: true }
}

/** Throws 410 if the client would miss records that have expired. */
export async function assertAvailable({ stream, state, seqNum, isExact }: ReadPosition): Promise<void> {
  const { tail } = state
  if (!isExact || seqNum >= tail.seqNum) return
  const { count, lastSeqNum } = await stream.readUnary({ seqNum, count: 1 }, { allowsEmpty: 'always' })
  const first = count === 0 ? tail.seqNum : lastSeqNum + 1 - count
  if (first > seqNum) throw goneError(first)
}

/** The reply to a read whose first records are gone. */
export function goneError(earliest: number): DurableStreamsError {
  return new DurableStreamsError(410, `the stream begins at offset ${offsetOf(earliest)}`)
}
