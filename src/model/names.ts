import { isWellFormed, utf8Length } from './bytes.ts'
import { BASIN_NAME_BYTES_MAX, REQUEST_TOKEN_BYTES_MAX, STREAM_NAME_BYTES_MAX } from './limits.ts'

/**
 * Name rules (wire-behaviour.md 8.1, rulings.md "Basins"). Each function returns what is wrong, or undefined. The caller decides
 * what a wrong name is: `bad_path`, `bad_query`, `bad_header`, `bad_json`, or in-process `invalid`.
 */
export type NameRole = 'name' | 'prefix' | 'start-after'

/** `bytesMin` is 1 for `PUT` and in-process calls, 8 for `POST` and the metrics paths. */
export function basinNameProblem(name: string, bytesMin = 1): string | undefined {
  if (utf8Length(name) > BASIN_NAME_BYTES_MAX) {
    return `basin name must not exceed ${BASIN_NAME_BYTES_MAX} bytes in length`
  }
  if (utf8Length(name) < bytesMin) {
    return bytesMin === 1
      ? 'basin name must not be empty'
      : `basin name should be at least ${bytesMin} bytes in length`
  }
  if (!/^[a-z0-9]/.test(name)) return 'basin name must begin with a lowercase letter or number'
  if (!/[a-z0-9]$/.test(name)) return 'basin name must end with a lowercase letter or number'
  if (!/^[a-z0-9-]*$/.test(name)) return 'basin name must comprise lowercase letters, numbers, and hyphens'
  return undefined
}

/** A `prefix` or `start_after` of a list of basins: may be empty, may end in a hyphen. */
export function basinPrefixProblem(text: string, role: NameRole): string | undefined {
  if (utf8Length(text) > BASIN_NAME_BYTES_MAX) {
    return `basin ${role} must not exceed ${BASIN_NAME_BYTES_MAX} bytes in length`
  }
  if (text !== '' && !/^[a-z0-9]/.test(text)) {
    return `basin ${role} must begin with a lowercase letter or number`
  }
  if (!/^[a-z0-9-]*$/.test(text)) {
    return `basin ${role} must comprise lowercase letters, numbers, and hyphens`
  }
  return undefined
}

export function streamNameProblem(name: string): string | undefined {
  if (name === '') return 'stream name must not be empty'
  if (name === '.' || name === '..') return 'stream name must not be "." or ".."'
  return streamPrefixProblem(name, 'name')
}

export function streamPrefixProblem(text: string, role: NameRole): string | undefined {
  if (!isWellFormed(text)) return `stream ${role} must be valid Unicode`
  if (utf8Length(text) > STREAM_NAME_BYTES_MAX) {
    return `stream ${role} must not exceed ${STREAM_NAME_BYTES_MAX} bytes in length`
  }
  return undefined
}

export function requestTokenProblem(token: string): string | undefined {
  return utf8Length(token) > REQUEST_TOKEN_BYTES_MAX
    ? `request token must not exceed ${REQUEST_TOKEN_BYTES_MAX} bytes in length`
    : undefined
}
