import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { SenderContext } from './sender-context.ts'

/** Resolves to the tail of a stream, or to 0 if the stream does not exist. */
export async function tailOrZero(stream: Stream, signal: AbortSignal): Promise<number> {
  try {
    return (await stream.checkTail({ signal })).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return 0
    throw error
  }
}

/**
 * Resolves to the tail of a remote stream, up to which a copy must be examined before an attempt can succeed.
 * An attempt that can only fail would leave its entries in doubt, which may never be resolved if the stream
 * is trimmed or the copy is replaced. Rejects with `unavailable` if the copy is longer: it is of a stream
 * that was deleted.
 */
export async function tailOfCopied(remote: Stream, copied: number, signal: AbortSignal): Promise<number> {
  const tail = await tailOrZero(remote, signal)
  if (tail >= copied) return tail
  throw mismatchedCopyError()
}

/**
 * Resolves to the tail of the stream in which records are examined, or to `least`, up to which they can be
 * read. Rejects with `unavailable` if it is a copy that was begun again: the server still has the records
 * below `position`, and the mirror will copy them.
 */
export async function tailOfExamined(
  { examined, remote }: Pick<SenderContext, 'examined' | 'remote'>,
  position: number,
  least: number,
  signal: AbortSignal,
): Promise<number> {
  if (examined === remote && least > position) return least
  const tail = await tailOrZero(examined, signal)
  if (tail >= position || examined === remote) return tail
  if ((await tailOrZero(remote, signal)) < position) return tail
  throw mismatchedCopyError()
}

/** Returns the error of a sender that waits until the mirror has compared the copy, or replaced it. */
export function mismatchedCopyError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the local copy does not match the stream of the server yet')
}
