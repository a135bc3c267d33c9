import type { StreamConfigInput } from '../model/config.ts'
import { checkInteger } from '../model/integers.ts'
import { fencingTokenProblem, refuse } from '../model/names.ts'
import type { StreamPosition } from '../model/position.ts'

/** A stream that goes on where another one was, of which the records before `start` are gone. */
export interface RestoredStream {
  readonly config?: StreamConfigInput
  /** The sequence number that its next record gets, and the timestamp below which none of its records goes. */
  readonly start: StreamPosition
  /** `''`, the default: it is not fenced. */
  readonly fencingToken?: string | undefined
}

/** Throws 422 `invalid`. */
export function checkRestoredStream({ start, fencingToken = '' }: RestoredStream): void {
  checkInteger(start.seqNum, 'seq_num')
  checkInteger(start.timestamp, 'timestamp')
  refuse(fencingTokenProblem(fencingToken), 'fencing_token')
}
