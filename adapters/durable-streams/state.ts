import type { EngineStream, Operation, StreamDescription } from '../../src/index.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { type Content, contentOf, DEFAULT_CONTENT_TYPE } from './content.ts'
import { DurableStreamsError, offsetOf, type StartOffset } from './headers.ts'

/** A stream as the protocol sees it. */
export interface DescribedStream extends StreamDescription {
  readonly contentType: string
  readonly content: Content
}

/** The metadata entries of a stream that the handler sets. */
export const METADATA = { contentType: 'content-type', fork: 'durable-streams-fork' } as const

/**
 * Returns the state of a stream for an append. A cached state is enough: the content type never changes, and
 * the append itself fails if the stream was deleted.
 */
export async function stateForAppend(stream: EngineStream): Promise<DescribedStream> {
  const known = stream.known()
  return known === undefined ? describedStream(stream, ['append']) : withContent(known)
}

/** Resolves to the state of a stream. Rejects with `stream_not_found`. */
export async function describedStream(
  stream: EngineStream,
  anyOf: readonly [Operation, ...Operation[]],
  options?: { readonly isRead: true },
): Promise<DescribedStream> {
  return withContent(await stream.describe(anyOf, options))
}

function withContent({ id, metadata, expiry, tail, trimPoint }: StreamDescription): DescribedStream {
  const contentType = metadata[METADATA.contentType] ?? DEFAULT_CONTENT_TYPE
  return { id, metadata, expiry, tail, trimPoint, contentType, content: contentOf(contentType) }
}

/** Resolves to undefined if the stream does not exist. */
export async function stateIfExists(
  stream: EngineStream,
  anyOf: readonly [Operation, ...Operation[]],
): Promise<DescribedStream | undefined> {
  try {
    return await describedStream(stream, anyOf)
  } catch (error) {
    if (isStreamMissing(error)) return undefined
    throw error
  }
}

/** The headers that describe a stream in responses to `PUT` and `HEAD`. */
export function descriptionHeaders({
  contentType,
  tail,
  expiry,
}: Pick<DescribedStream, 'contentType' | 'expiry'> & {
  readonly tail: Pick<DescribedStream['tail'], 'seqNum' | 'closed'>
}): Record<string, string> {
  return {
    'content-type': contentType,
    'stream-next-offset': offsetOf(tail.seqNum),
    ...(tail.closed && { 'stream-closed': 'true' }),
    ...(expiry !== undefined &&
      ('at' in expiry
        ? { 'stream-expires-at': new Date(expiry.at).toISOString() }
        : { 'stream-ttl': String(expiry.idleSeconds) })),
  }
}

/** The start of a read. */
export interface ReadPosition {
  readonly stream: EngineStream
  readonly state: DescribedStream
  readonly seqNum: number
  /** Whether the client named the position, so that the read must fail if records there were removed. */
  readonly isExact: boolean
}

/** Returns the position of a read. Throws 400 beyond the tail, and 410 below the first remaining record. */
export function readPositionOf(
  start: StartOffset,
  stream: EngineStream,
  state: DescribedStream,
): ReadPosition {
  const { tail, trimPoint } = state
  if (start === 'now') return { stream, state, seqNum: tail.seqNum, isExact: true }
  if (start === 'beginning') return { stream, state, seqNum: trimPoint, isExact: false }
  if (start > tail.seqNum) throw new DurableStreamsError(400, '`offset` is beyond the end of the stream')
  if (start < trimPoint) throw goneError(trimPoint)
  return { stream, state, seqNum: start, isExact: true }
}

/** Rejects with 410 if records at the position have expired. */
export async function assertAvailable({ stream, state, seqNum, isExact }: ReadPosition): Promise<void> {
  const { tail } = state
  if (!isExact || seqNum >= tail.seqNum) return
  const { count, lastSeqNum } = await stream.readUnary({ seqNum, count: 1 }, { allowsEmpty: 'always' })
  const first = count === 0 ? tail.seqNum : lastSeqNum + 1 - count
  if (first > seqNum) throw goneError(first)
}

/** The error of a read whose first records were removed. */
export function goneError(earliest: number): DurableStreamsError {
  return new DurableStreamsError(410, `the stream begins at offset ${offsetOf(earliest)}`)
}
