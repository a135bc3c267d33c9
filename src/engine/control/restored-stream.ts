import type { Cipher, StreamConfigInput } from '../../model/config.ts'
import { checkBasinConfig } from '../../model/config-validation.ts'
import { refuse } from '../../model/errors.ts'
import { fencingTokenProblem } from '../../model/fencing-token.ts'
import { checkInteger } from '../../model/integers.ts'
import type { StreamPosition } from '../../model/position.ts'

/** A stream that goes on where another one was, of which the records before `start` are gone. */
export interface RestoredStream {
  readonly config?: StreamConfigInput
  /** The sequence number that its next record gets, and the timestamp below which none of its records goes. */
  readonly start: StreamPosition
  /** `''`, the default: it is not fenced. */
  readonly fencingToken?: string | undefined
  /** Null: its records are plain text. The default is what new streams of the basin get. */
  readonly cipher?: Cipher | null | undefined
}

/** Throws 422 `invalid`. */
export function checkRestoredStream({ start, fencingToken = '', cipher }: RestoredStream): void {
  checkInteger(start.seqNum, 'seq_num')
  checkInteger(start.timestamp, 'timestamp')
  refuse(fencingTokenProblem(fencingToken), 'fencing_token')
  checkBasinConfig({ streamCipher: cipher })
}
