import type { AppendBatch } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { APPEND_HEADER, encodeAppendHeader } from '../../src/wire/headers.ts'
import { withEffects } from './errors.ts'

/** Returns the headers that the request of an append with a producer or a `streamSeq` has in addition. */
export function appendHeaders(batch: AppendBatch): Readonly<Record<string, string>> {
  return { [APPEND_HEADER]: encodeAppendHeader(batch)! }
}

/** Throws `unsupported` if the response to a stored batch is one of a server that ignores the header. */
export function assertKnown(result: string | null): void {
  if (result === null) throw unsupported(true)
}

/**
 * Returns the error of a rejected batch. A server that ignores the header says that the tail is not the one
 * that the body requires, which is none.
 */
export function extensionError(
  error: HeadwaterError,
  { matchSeqNum }: AppendBatch,
  isRepeated: boolean,
): HeadwaterError {
  const { code, seqNum } = error
  const isIgnored = code === 'seq_num_mismatch' && (matchSeqNum === undefined || seqNum === matchSeqNum)
  return isIgnored ? unsupported(isRepeated) : error
}

/**
 * Returns the error of a batch that was sent more than once. The server checks the request and its token,
 * then whether the batch is stored, and then everything else. Another epoch hides the batches of the one
 * before.
 */
export function afterRepetition(error: HeadwaterError): HeadwaterError {
  const { mayHaveEffects, retryable, status } = error
  // 400, 401 and 403, which is also the status of `producer_fenced`.
  return withEffects(error, mayHaveEffects || retryable || status < 404)
}

/** Throws `unsupported` for a batch that only a request of its own can carry. */
export function assertPlain({ producer, streamSeq }: AppendBatch): void {
  if (producer === undefined && streamSeq === undefined) return
  const message = 'sessions over HTTP do not support `producer` and `streamSeq`; use `stream.append`'
  throw new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects: false })
}

function unsupported(mayHaveEffects: boolean): HeadwaterError {
  const message = 'the server ignores `producer` and `streamSeq`'
  return new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects })
}
