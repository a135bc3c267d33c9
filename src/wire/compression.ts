import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import { trackExternalWork } from '../runtime/clock.ts'
import { type Codec, CompressedDataError, type Compression } from './codec.ts'

/** Compresses one message at the default level of the algorithm. */
export function compress(algorithm: Compression, data: Uint8Array): Promise<Uint8Array> {
  return trackExternalWork(codecFor(algorithm).then((codec) => codec.compress(data)))
}

/** The limit of a decompression, and the error if it is exceeded. */
export interface DecompressionLimits {
  /** The largest output, at most 2,097,152 bytes. */
  readonly bytesMax: number
  /** The code of the error for damaged or larger data. */
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
    return await trackExternalWork(codecFor(algorithm).then((codec) => codec.decompress(data, bytesMax)))
  } catch (cause) {
    if (!(cause instanceof CompressedDataError)) throw cause
    const message =
      cause.reason === 'too-large'
        ? `${algorithm} data decompresses to more than ${bytesMax} bytes`
        : `${algorithm} data is malformed: ${cause.message}`
    throw new HeadwaterError(code, message, { cause })
  }
}

const codecs = new Map<Compression, Promise<Codec>>()

function codecFor(algorithm: Compression): Promise<Codec> {
  let codec = codecs.get(algorithm)
  if (codec === undefined) {
    codec = import('./codecs.ts').then(({ loadCodec }) => loadCodec(algorithm))
    codecs.set(algorithm, codec)
    // A module that could not be loaded now may load later.
    codec.catch(() => codecs.delete(algorithm))
  }
  return codec
}
