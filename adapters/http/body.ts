import { HeadwaterError } from '../../src/model/errors.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { contentCodingOf, decompress } from '../../src/wire/compression.ts'
import { mediaKind, requireJson } from '../../src/wire/media-type.ts'
import type { ApiRequest } from './request.ts'

/** A compressed body may be slightly longer than its content. */
const COMPRESSION_ALLOWANCE_BYTES = 65_536

/** The milliseconds after which an incomplete upload watches its token: a revocation then ends it. */
const SLOW_UPLOAD_MS = 100

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
  const contentEncoding = exchange.header('content-encoding')
  const coding = contentEncoding === undefined ? 'identity' : (contentCodingOf(contentEncoding) ?? 'identity')
  let reserved = 0
  let tokenEnd: { readonly error: unknown } | undefined
  const reserve = (bytes: number) => {
    if (tokenEnd !== undefined) throw tokenEnd.error
    // A request alone never exceeds the limit: it would be rejected forever.
    const needed = Math.min(bytes, pendingBodyBytes)
    settings.pendingBodies.acquire(needed - reserved)
    reserved = needed
  }
  const onTokenEnd = (error: unknown) => {
    tokenEnd = { error }
  }
  try {
    const limit = coding === 'identity' ? bodyBytes : bodyBytes + COMPRESSION_ALLOWANCE_BYTES
    const reading = exchange.bytes(limit, reserve)
    const hasToken = request.caller !== undefined
    const received = await (hasToken ? unlessTokenEnds(request, reading, onTokenEnd) : reading)
    if (received === undefined) throw tooLong(code, bodyBytes)
    if (coding === 'identity' || received.length === 0) return received
    // Not before the compressed body is complete: a stalled upload reserves only what it has sent.
    reserve(received.length + bodyBytes)
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

function tooLong(code: BodyErrorCode, bodyBytes: number): HeadwaterError {
  return new HeadwaterError(code, `the body must not exceed ${bodyBytes} bytes`, { field: BODY_LENGTH })
}

/**
 * Settles as `reading` does. If that takes long and the token of the request ends meanwhile, calls `onEnd`
 * and rejects with the same error.
 */
async function unlessTokenEnds<Result>(
  request: ApiRequest,
  reading: Promise<Result>,
  onEnd: (error: unknown) => void,
): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopWatching: Promise<(() => void) | undefined> | undefined
  const ended = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      stopWatching = watchToken(request, (error) => {
        onEnd(error)
        reject(error)
      })
    }, SLOW_UPLOAD_MS)
  })
  try {
    return await Promise.race([reading, ended])
  } finally {
    clearTimeout(timer)
    void stopWatching?.then((stop) => stop?.())
  }
}

/** Calls `onEnd` when the token of the request ends. Resolves to the function that stops. Never rejects. */
async function watchToken(
  { caller }: ApiRequest,
  onEnd: (error: unknown) => void,
): Promise<(() => void) | undefined> {
  try {
    const watch = await caller?.watchToken()
    if (watch === undefined) return undefined
    const { ended, release } = watch
    const end = () => onEnd(ended.reason)
    ended.addEventListener('abort', end)
    if (ended.aborted) end()
    return () => {
      ended.removeEventListener('abort', end)
      release()
    }
  } catch (error) {
    onEnd(error)
    return undefined
  }
}
