import { invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'

/** Throws 422 `invalid` unless the value is an integer from 0 to 2^53 - 1. */
export function checkInteger(value: number, field: string): void {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw invalid(`${field} must be an integer from 0 to ${INTEGER_MAX}`, field)
  }
}
