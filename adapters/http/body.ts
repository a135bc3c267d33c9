import { EMPTY_BYTES } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { contentCodingOf, decompress } from '../../src/wire/compression.ts'
import { mediaKind, requireJson } from '../../src/wire/media-type.ts'
import { bodyAlreadyRead } from './exchange.ts'
import type { ApiRequest } from './request.ts'

/** A compressed body may be slightly longer than its content. */
const COMPRESSION_ALLOWANCE_BYTES = 65_536

/** The field of the error for a body that is too long. */
export const BODY_LENGTH = 'content-length'

/** The code of the error for a body that cannot be read or is too long. */
type BodyErrorCode = 'bad_json' | 'bad_proto'

/**
 * Reads a mandatory JSON body, as `wholeBody` does. Throws 400 `bad_json` before reading it if the content
 * type is another.
 */
export function jsonBody(request: ApiRequest): MaybePromise<Uint8Array> {
  requireJson(request.exchange.header('content-type'))
  return wholeBody(request, 'bad_json')
}

/**
 * Reads an optional JSON body; undefined without a content type. An empty body counts as absent too. Throws
 * 400 `bad_json` before reading it if the content type is another.
 */
export async function optionalBody(request: ApiRequest): Promise<Uint8Array | undefined> {
  const contentType = request.exchange.header('content-type')
  if (mediaKind(contentType) === undefined) return undefined
  requireJson(contentType)
  return wholeBody(request, 'bad_json')
}

/**
 * Reads the body and decompresses it; returns it at once if it was received and is not compressed. Throws or
 * rejects with `code` if it is too long, malformed or incomplete, and with `rate_limited` if the bytes of all
 * incomplete bodies exceed their limit.
 */
export function wholeBody(request: ApiRequest, code: BodyErrorCode): MaybePromise<Uint8Array> {
  const { exchange, settings } = request
  const isCompressed = exchange.header('content-encoding') !== undefined
  const received = isCompressed ? undefined : exchange.bytesIfReceived?.()
  if (received === undefined) return receive(request, code)
  const { bodyBytes } = settings.limits
  if (received.length > bodyBytes) throw tooLong(code, bodyBytes)
  return received
}

async function receive(request: ApiRequest, code: BodyErrorCode): Promise<Uint8Array> {
  const { exchange, settings } = request
  const { bodyBytes, pendingBodyBytes } = settings.limits
  const coding = contentCodingOf(exchange.header('content-encoding') ?? null) ?? 'identity'
  const limit = coding === 'identity' ? bodyBytes : bodyBytes + COMPRESSION_ALLOWANCE_BYTES
  let reserved = 0
  const reserve = (bytes: number) => {
    // A request alone never exceeds the limit: it would be rejected forever.
    const needed = Math.min(bytes, pendingBodyBytes)
    settings.pendingBodies.acquire(needed - reserved)
    reserved = needed
  }
  let body: Uint8Array = EMPTY_BYTES
  let length = 0
  try {
    for await (const chunk of exchange.chunks()) {
      if (length + chunk.length > limit) throw tooLong(code, bodyBytes)
      body = withChunk(body, length, chunk, limit)
      length += chunk.length
      reserve(length)
    }
    if (length === 0 && Number(exchange.header('content-length')) > 0) throw bodyAlreadyRead()
    const received = body.subarray(0, length)
    if (coding === 'identity' || length === 0) return received
    // Not before the compressed body is complete: a stalled upload reserves only what it has sent.
    reserve(length + bodyBytes)
    return await decompress(coding, received, { bytesMax: bodyBytes, code })
  } catch (cause) {
    if (HeadwaterError.is(cause)) throw cause
    exchange.signal.throwIfAborted()
    // Frameworks have limits of their own, which the message of their error names.
    const reason = cause instanceof Error && cause.message !== '' ? `: ${cause.message}` : ''
    throw new HeadwaterError(code, `the request body could not be read${reason}`, { cause })
  } finally {
    settings.pendingBodies.release(reserved)
  }
}

/**
 * Returns the first `length` bytes of a body followed by a chunk. The array may be longer, up to `limit`: it
 * doubles, because a list of tiny chunks would occupy many times their length.
 */
function withChunk(body: Uint8Array, length: number, chunk: Uint8Array, limit: number): Uint8Array {
  if (length === 0) return chunk
  const needed = length + chunk.length
  let whole = body
  if (needed > body.length) {
    whole = new Uint8Array(Math.min(limit, 2 * needed))
    whole.set(body.subarray(0, length))
  }
  whole.set(chunk, length)
  return whole
}

function tooLong(code: BodyErrorCode, bodyBytes: number): HeadwaterError {
  return new HeadwaterError(code, `the body must not exceed ${bodyBytes} bytes`, { field: BODY_LENGTH })
}
