import { REQUEST_TOKEN_BYTES_MAX, STREAM_NAME_BYTES_MAX } from './limits.ts'
import { basinTextProblem, type NameRole, textProblem } from './names.ts'

/** The problem with a `prefix` or `startAfter` of a list of basins: may be empty, may end in a hyphen. */
export function basinPrefixProblem(text: string, role: NameRole): string | undefined {
  return basinTextProblem(`basin ${role}`, text, 0)
}

/**
 * The problem with a `prefix` or `startAfter` of a list of streams: at most 512 bytes, may be empty. A
 * position in a list may be a name followed by U+0000.
 */
export function streamPrefixProblem(text: string, role: NameRole): string | undefined {
  return textProblem(`stream ${role}`, text, STREAM_NAME_BYTES_MAX, role !== 'start-after')
}

/** The problem with a request token: at most 36 bytes. */
export function requestTokenProblem(token: string): string | undefined {
  return textProblem('request token', token, REQUEST_TOKEN_BYTES_MAX)
}
