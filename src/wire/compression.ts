import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import { unclocked } from '../storage/unclocked.ts'
import { type Codec, CompressedDataError } from './codec.ts'
import { portableGzip } from './codec-gzip.ts'
import { nodeGzip, nodeZlib, nodeZstd } from './codec-node.ts'
import { loadZstdBinding, portableZstd } from './codec-zstd.ts'
import type { Compression } from './frame.ts'

/** Compresses one message, at the algorithm's default level. */
export function compress(algorithm: Compression, data: Uint8Array): Promise<Uint8Array> {
  return unclocked(codecFor(algorithm).then((codec) => codec.compress(data)))
}

export interface DecompressionLimits {
  /** Largest output; at most 2,097,152. */
  readonly bytesMax: number
  /** What to call data that is damaged or makes more than that. */
  readonly code: ErrorCode
}

/**
 * Decompresses one message. Rejects with a `HeadwaterError` of the given code when the data is damaged, cut short, followed by
 * something else, or makes more than `bytesMax`: then before much memory is spent on it.
 */
export async function decompress(
  algorithm: Compression,
  data: Uint8Array,
  { bytesMax, code }: DecompressionLimits,
): Promise<Uint8Array> {
  try {
    return await unclocked(codecFor(algorithm).then((codec) => codec.decompress(data, bytesMax)))
  } catch (cause) {
    if (!(cause instanceof CompressedDataError)) throw cause
    const message =
      cause.reason === 'too-large'
        ? `${algorithm} data decompresses to more than ${bytesMax} bytes`
        : `${algorithm} data is malformed`
    throw new HeadwaterError(code, message, { cause })
  }
}

const codecs = new Map<Compression, Promise<Codec>>()

function codecFor(algorithm: Compression): Promise<Codec> {
  let codec = codecs.get(algorithm)
  if (codec === undefined) {
    codec = algorithm === 'gzip' ? loadGzip() : loadZstd()
    codecs.set(algorithm, codec)
    // A module that could not be fetched now may be later.
    codec.catch(() => codecs.delete(algorithm))
  }
  return codec
}

/** The runtime's own codecs come first, libraries only where it has none. */
async function loadGzip(): Promise<Codec> {
  const zlib = nodeZlib()
  return zlib === undefined ? portableGzip(await import('fflate')) : nodeGzip(zlib)
}

async function loadZstd(): Promise<Codec> {
  const zlib = nodeZlib()
  return (zlib && nodeZstd(zlib)) ?? portableZstd(loadZstdBinding)
}
