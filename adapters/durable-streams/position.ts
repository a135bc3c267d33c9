import type { EngineStream } from '../../src/index.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { offsetOf, type StartOffset } from './offsets.ts'
import type { DescribedStream } from './state.ts'

/** The start of a read. */
export interface ReadPosition {
  readonly stream: EngineStream
  readonly state: DescribedStream
  readonly seqNum: number
  /** Whether the client named the position, so that the read must fail if records there were removed. */
  readonly isExact: boolean
}

/** Returns the position of a read. Throws 400 beyond the tail, and 410 below the first remaining record. */
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

/** Rejects with 410 if records at the position have expired. */
export async function assertAvailable({ stream, state, seqNum, isExact }: ReadPosition): Promise<void> {
  const { tail } = state
  if (!isExact || seqNum >= tail.seqNum) return
  const { count, lastSeqNum } = await stream.readUnary({ seqNum, count: 1 }, { allowsEmpty: 'always' })
  const first = count === 0 ? tail.seqNum : lastSeqNum + 1 - count
  if (first > seqNum) throw goneError(first)
}

/** The error of a read whose first records were removed. */
export function goneError(earliest: number): DurableStreamsError {
  return new DurableStreamsError(410, `the stream begins at offset ${offsetOf(earliest)}`)
}
