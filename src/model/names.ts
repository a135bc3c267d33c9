import { utf8Length } from './bytes.ts'
import {
  BASIN_NAME_BYTES_MAX,
  FENCING_TOKEN_BYTES_MAX,
  REQUEST_TOKEN_BYTES_MAX,
  STREAM_NAME_BYTES_MAX,
} from './limits.ts'

/**
 * The role of a text in the request that contains it. The rules of names (docs/protocol.md "Names") are
 * functions that return the problem with a text, or undefined. The caller decides on the error: `bad_path`,
 * `bad_query`, `bad_header`, `bad_json`, or `invalid` in-process.
 */
export type NameRole = 'name' | 'prefix' | 'start-after'

/**
 * The problem with the name of a basin: lower-case letters, digits and hyphens, none at the ends. `bytesMin`
 * is 1 for `PUT` and in-process calls, and 8 for `POST` and the metrics paths.
 */
export function basinNameProblem(name: string, bytesMin = 1): string | undefined {
  return basinTextProblem('basin name', name, bytesMin)
}

/** The problem with a `prefix` or `startAfter` of a list of basins: may be empty, may end in a hyphen. */
export function basinPrefixProblem(text: string, role: NameRole): string | undefined {
  return basinTextProblem(`basin ${role}`, text, 0)
}

function basinTextProblem(what: string, text: string, bytesMin: number): string | undefined {
  if (typeof text !== 'string') return `${what} must be a string`
  const bytes = utf8Length(text)
  if (bytes > BASIN_NAME_BYTES_MAX) return `${what} must not exceed ${BASIN_NAME_BYTES_MAX} bytes in length`
  if (bytes < bytesMin) {
    return bytesMin === 1
      ? `${what} must not be empty`
      : `${what} should be at least ${bytesMin} bytes in length`
  }
  if (!/^([a-z0-9]|$)/.test(text)) return `${what} must begin with a lowercase letter or number`
  if (bytesMin > 0 && !/[a-z0-9]$/.test(text)) return `${what} must end with a lowercase letter or number`
  return /^[a-z0-9-]*$/.test(text)
    ? undefined
    : `${what} must comprise lowercase letters, numbers, and hyphens`
}

/** The problem with the name of a stream: 1 to 512 bytes without U+0000, neither `.` nor `..`. */
export function streamNameProblem(name: string): string | undefined {
  return textProblem('stream name', name, STREAM_NAME_BYTES_MAX, 'name')
}

/** The names of a stream and its basin. */
export interface StreamRef {
  readonly basin: string
  /** The name of the stream in the storage. */
  readonly stream: string
  /** The name in error messages, where the caller knows the stream without a prefix. */
  readonly shownAs?: string | undefined
}

/** The problem with a fencing token: at most 36 bytes. */
export function fencingTokenProblem(token: string): string | undefined {
  return textProblem('fencing token', token, FENCING_TOKEN_BYTES_MAX)
}

/**
 * What a text may be: `any` text, one that is `filled`, the beginning of a name, or a name, which is neither
 * `.` nor `..`. Names exclude U+0000, which ends a text in some languages and databases, so that two names
 * would be one there.
 */
export type TextKind = 'any' | 'filled' | 'beginning' | 'name'

/** The problem with a text that is stored as UTF-8, or undefined. */
export function textProblem(
  what: string,
  text: string,
  bytesMax: number,
  kind: TextKind = 'any',
): string | undefined {
  if (typeof text !== 'string') return `${what} must be a string`
  const bytes = utf8Length(text)
  // Bytes as many as characters are ASCII.
  if (bytes !== text.length && !text.isWellFormed()) return `${what} must be valid Unicode`
  if (bytes > bytesMax) return `${what} must not exceed ${bytesMax} bytes in length`
  if (kind === 'any') return undefined
  if (text === '' && kind !== 'beginning') return `${what} must not be empty`
  if (kind === 'name' && (text === '.' || text === '..')) return `${what} must not be "." or ".."`
  return kind !== 'filled' && text.includes('\0') ? `${what} must not contain U+0000` : undefined
}

export function locationNameProblem(name: string): string | undefined {
  return typeof name === 'string' && /^[A-Za-z0-9:.-]{1,64}$/.test(name)
    ? undefined
    : 'location must be 1 to 64 letters, digits, colons, hyphens and dots'
}

/**
 * The problem with a `prefix` or `startAfter` of a list of streams: at most 512 bytes, may be empty. A
 * position in a list may be a name followed by U+0000.
 */
export function streamPrefixProblem(text: string, role: NameRole): string | undefined {
  return textProblem(
    `stream ${role}`,
    text,
    STREAM_NAME_BYTES_MAX,
    role === 'start-after' ? 'any' : 'beginning',
  )
}

export function requestTokenProblem(token: string): string | undefined {
  return textProblem('request token', token, REQUEST_TOKEN_BYTES_MAX)
}
