import { EMPTY_BYTES } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import { compress, decompress } from './compression.ts'
import type { Compression } from './frame.ts'

/** Largest body of a unary request, after decompression (wire-behaviour.md 1.4). */
export const REQUEST_BODY_BYTES_MAX = 2_097_152
/** Bodies of unary responses are compressed when they are longer than this. */
export const RESPONSE_COMPRESSION_BYTES_MIN = 1024

/** Compressed bodies may be a little longer than what they hold. */
const COMPRESSED_BODY_BYTES_MAX = REQUEST_BODY_BYTES_MAX + 65_536

/** How the body of a message is encoded. */
export type ContentCoding = Compression | 'identity'

/**
 * Reads a request's `Content-Encoding`. Undefined for a coding, or a list of codings, that is not supported: to be answered with
 * status 415 and no error body.
 */
export function contentCodingOf(contentEncoding: string | null): ContentCoding | undefined {
  switch (contentEncoding?.trim().toLowerCase()) {
    case undefined:
    case '':
    case 'identity':
      return 'identity'
    case 'gzip':
    case 'x-gzip':
      return 'gzip'
    case 'zstd':
      return 'zstd'
    default:
      return undefined
  }
}

/**
 * Reads the whole body of a request, decompressed. Never holds much more than {@link REQUEST_BODY_BYTES_MAX}: a longer body is
 * cancelled. Rejects with a `HeadwaterError` of the given code when the body is too long or damaged.
 */
export async function readBody(
  body: ReadableStream<Uint8Array> | null,
  coding: ContentCoding,
  code: ErrorCode,
): Promise<Uint8Array> {
  if (body === null) return EMPTY_BYTES
  if (coding === 'identity') return gather(body, REQUEST_BODY_BYTES_MAX, code)
  const compressed = await gather(body, COMPRESSED_BODY_BYTES_MAX, code)
  // An empty body is one that is absent, whatever the headers say.
  if (compressed.length === 0) return EMPTY_BYTES
  return decompress(coding, compressed, { bytesMax: REQUEST_BODY_BYTES_MAX, code })
}

async function gather(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
  code: ErrorCode,
): Promise<Uint8Array> {
  const reader = body.getReader()
  let gathered: Uint8Array = EMPTY_BYTES
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return gathered.subarray(0, length)
    const nextLength = length + value.length
    if (nextLength > bytesMax) {
      // Whoever sends need not take note: the answer does not wait for it.
      reader.cancel().catch(() => undefined)
      throw new HeadwaterError(code, `the body must not exceed ${REQUEST_BODY_BYTES_MAX} bytes`)
    }
    if (length === 0) gathered = value
    else {
      // Copied into one array that doubles: tiny chunks kept as they are would cost many times their length.
      if (nextLength > gathered.length) {
        const grown = new Uint8Array(Math.min(bytesMax, 2 * nextLength))
        grown.set(gathered.subarray(0, length))
        gathered = grown
      }
      gathered.set(value, length)
    }
    length = nextLength
  }
}

/**
 * How to encode a unary response: the supported coding that `Accept-Encoding` prefers, zstd where it has no preference. Unlike
 * in sessions, weights count. Undefined is not at all.
 */
export function responseCodingOf(acceptEncoding: string | null): Compression | undefined {
  let best: Compression | undefined
  let bestWeight = 0
  for (const item of (acceptEncoding ?? '').split(',')) {
    const [name, ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    const coding = name === 'x-gzip' ? 'gzip' : name
    if (coding !== 'zstd' && coding !== 'gzip') continue
    const weight = weightOf(parameters)
    if (weight > bestWeight || (weight === bestWeight && weight > 0 && coding === 'zstd')) {
      best = coding
      bestWeight = weight
    }
  }
  return best
}

function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  if (weight === undefined) return 1
  const value = Number.parseFloat(weight.slice(2))
  return value >= 0 && value <= 1 ? value : 0
}

/** Compresses a response body if it is long enough, otherwise resolves to undefined. */
export async function compressedBody(
  body: Uint8Array,
  coding: Compression | undefined,
): Promise<Uint8Array | undefined> {
  if (coding === undefined || body.length <= RESPONSE_COMPRESSION_BYTES_MIN) return undefined
  return compress(coding, body)
}
