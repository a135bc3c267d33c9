import { HeadwaterError } from '../../src/model/errors.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'

/**
 * The tail of the stream if the error says that there is nothing to read, which is none to the library;
 * undefined for other errors, and for a start beyond the tail.
 */
export function emptyAt({ seqNum, clamp }: ReadQuery, error: unknown): StreamTail | undefined {
  if (!HeadwaterError.is(error) || error.code !== 'range_not_satisfiable') return undefined
  const { tail } = error
  if (tail === undefined || (seqNum !== undefined && seqNum > tail.seqNum && clamp !== true)) return undefined
  return tail
}
