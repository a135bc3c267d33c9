import type { AppendBatch } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { encodeAppendHeader } from '../../src/wire/append-header.ts'
import { APPEND_HEADER } from '../../src/wire/append-header-name.ts'
import type { ClientCore } from './core.ts'
import { withEffects } from './errors.ts'

/**
 * Returns the header of an append with a producer or a `streamSeq`; undefined for others. Throws
 * `unsupported` if the server is known to ignore it.
 */
export function extensionHeaders(
  { knowsProducers }: ClientCore,
  batch: AppendBatch,
): Readonly<Record<string, string>> | undefined {
  const value = encodeAppendHeader(batch)
  if (value === undefined) return undefined
  if (knowsProducers === false) throw unsupported(false)
  return { [APPEND_HEADER]: value }
}

/**
 * Notes whether the server knows the header, which its replies have then. Throws `unsupported` if it does
 * not: the batch is stored, but would be stored again.
 */
export function assertKnown(core: ClientCore, result: string | null): void {
  core.knowsProducers = result !== null
  if (result === null) throw unsupported(true)
}

/**
 * Returns the error of a batch that was sent more than once. The server finds a batch stored before it checks
 * anything else, except that another epoch hides those of the epoch before.
 */
export function afterRepetition(error: HeadwaterError): HeadwaterError {
  const isCertain = !error.mayHaveEffects && !error.retryable && error.code !== 'producer_fenced'
  return withEffects(error, !isCertain)
}

/** Throws `unsupported` for a batch that only a request of its own can carry. */
export function assertPlain({ producer, streamSeq }: AppendBatch): void {
  if (producer === undefined && streamSeq === undefined) return
  const message = 'sessions over HTTP do not support `producer` and `streamSeq`; use `stream.append`'
  throw new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects: false })
}

function unsupported(isStored: boolean): HeadwaterError {
  const reason = 'the server ignores `producer` and `streamSeq`'
  const message = isStored ? `${reason}; it has stored the batch without a check` : reason
  return new HeadwaterError('unsupported', message, { field: 'producer', mayHaveEffects: isStored })
}
