import { isWellFormed, utf8Length } from './bytes.ts'
import { FENCING_TOKEN_BYTES_MAX } from './limits.ts'

/** Returns what is wrong, or undefined. What a wrong one is, is for the caller to say. */
export function fencingTokenProblem(token: string): string | undefined {
  if (!isWellFormed(token)) return 'fencing token must be valid Unicode'
  return utf8Length(token) > FENCING_TOKEN_BYTES_MAX
    ? `fencing token must not exceed ${FENCING_TOKEN_BYTES_MAX} bytes in length`
    : undefined
}
