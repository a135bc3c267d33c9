import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import { trackExternalWork } from '../runtime/clock.ts'
import {
  type Codec,
  CompressedDataError,
  type Compression,
  nodeGzip,
  nodeZlib,
  streamGzip,
} from './codecs.ts'
import { nativeZstd, portableZstd } from './zstd.ts'

/** Compresses one message at the default level of the algorithm. */
export function compress(algorithm: Compression, data: Uint8Array): Promise<Uint8Array> {
  return trackExternalWork(codecFor(algorithm).compress(data))
}

interface DecompressionLimits {
  /** The largest output, at most 2,097,152 bytes. */
  readonly bytesMax: number
  readonly code: ErrorCode
}

/**
 * Decompresses one message. Rejects with a `HeadwaterError` of the given code if the data is damaged,
 * truncated, followed by other data, or decompresses to more than `bytesMax`, without using much memory for
 * it.
 */
export async function decompress(
  algorithm: Compression,
  data: Uint8Array,
  { bytesMax, code }: DecompressionLimits,
): Promise<Uint8Array> {
  try {
    return await trackExternalWork(codecFor(algorithm).decompress(data, bytesMax))
  } catch (cause) {
    if (!(cause instanceof CompressedDataError)) throw cause
    const message =
      cause.reason === 'too-large'
        ? `${algorithm} data decompresses to more than ${bytesMax} bytes`
        : `${algorithm} data is malformed: ${cause.message}`
    throw new HeadwaterError(code, message, { cause })
  }
}

/**
 * The codec of the runtime: of `node:zlib`, or else gzip of `CompressionStream`, which browsers and workers
 * have. Undefined for zstd where the runtime lacks it: before Node 22.15, and in browsers.
 */
export function platformCodec(algorithm: Compression): Codec | undefined {
  const zlib = nodeZlib()
  if (algorithm === 'zstd') return zlib && nativeZstd(zlib)
  return zlib === undefined ? streamGzip : nodeGzip(zlib)
}

const zstdOfLibrary = portableZstd()

function codecFor(algorithm: Compression): Codec {
  return platformCodec(algorithm) ?? zstdOfLibrary
}

/** The largest body of a unary request after decompression, in bytes (docs/protocol.md "Limits"). */
export const REQUEST_BODY_BYTES_MAX = 2_097_152
/** Response bodies longer than this, in bytes, are compressed. */
export const RESPONSE_COMPRESSION_BYTES_MIN = 1024

type ContentCoding = Compression | 'identity'

const CONTENT_CODINGS: ReadonlyMap<string, ContentCoding> = new Map([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['zstd', 'zstd'],
])

/**
 * Parses the `Content-Encoding` of a request. Returns undefined for a coding, or a list of codings, that is
 * not supported: the response is 415 without a body.
 */
export function contentCodingOf(contentEncoding: string | null): ContentCoding | undefined {
  return CONTENT_CODINGS.get((contentEncoding ?? '').trim().toLowerCase())
}

/**
 * The coding of a unary response: the supported one that `Accept-Encoding` prefers, zstd on a tie, undefined
 * for none. Unlike in sessions, weights count.
 */
export function responseCodingOf(acceptEncoding: string | null): Compression | undefined {
  let best: Compression | undefined
  let bestWeight = 0
  for (const item of (acceptEncoding ?? '').split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    const coding = CONTENT_CODINGS.get(name)
    if (coding === undefined || coding === 'identity') continue
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
