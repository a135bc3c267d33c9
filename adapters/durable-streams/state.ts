import type { EngineStream, Operation, StreamDescription } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type Content, contentOf, DEFAULT_CONTENT_TYPE } from './content.ts'
import { offsetOf } from './offsets.ts'

/** A stream as the protocol sees it. */
export interface StreamState extends StreamDescription {
  readonly contentType: string
  readonly content: Content
}

/** The names of what the handler keeps in the metadata of a stream. */
export const METADATA = { contentType: 'content-type', fork: 'durable-streams-fork' } as const

/** Resolves to the state of a stream. Rejects with `stream_not_found`. */
export async function stateOf(
  stream: EngineStream,
  anyOf: readonly [Operation, ...Operation[]],
  options?: { readonly isRead: true },
): Promise<StreamState> {
  const description = await stream.describe(anyOf, options)
  const contentType = description.metadata[METADATA.contentType] ?? DEFAULT_CONTENT_TYPE
  return { ...description, contentType, content: contentOf(contentType) }
}

/** Resolves to undefined if the stream does not exist. */
export async function stateIfExists(
  stream: EngineStream,
  anyOf: readonly [Operation, ...Operation[]],
): Promise<StreamState | undefined> {
  try {
    return await stateOf(stream, anyOf)
  } catch (error) {
    const isMissing = HeadwaterError.is(error) && /^(stream|basin)_not_found$/.test(error.code)
    if (isMissing) return undefined
    throw error
  }
}

/** The headers that describe a stream in responses to `PUT` and `HEAD`. */
export function descriptionHeaders({ contentType, tail, expiry }: StreamState): Record<string, string> {
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
