import { concatBytes } from '../model/bytes.ts'
import { nodeModule } from '../runtime/node.ts'

export type Compression = 'zstd' | 'gzip'

/** A compression algorithm. Both directions take whole messages. */
export interface Codec {
  compress(data: Uint8Array): Promise<Uint8Array>
  /**
   * Rejects with {@link CompressedDataError} if the data is damaged or decompresses to more than `bytesMax`.
   * Uses memory in proportion to `data` and `bytesMax`, whatever size the data declares.
   */
  decompress(data: Uint8Array, bytesMax: number): Promise<Uint8Array>
}

export class CompressedDataError extends Error {
  readonly reason: 'malformed' | 'too-large'

  constructor(reason: 'malformed' | 'too-large', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CompressedDataError'
    this.reason = reason
  }
}

export function tooLarge(cause?: unknown): CompressedDataError {
  return new CompressedDataError('too-large', 'decompresses to too much', cause)
}

export function malformed(problem: string, cause?: unknown): CompressedDataError {
  return new CompressedDataError('malformed', problem, cause)
}

export function damaged(cause?: unknown): CompressedDataError {
  return malformed('damaged compressed data', cause)
}

/** The part of `node:zlib` in use. Its zstd functions exist since Node 22.15. */
export interface NodeZlib {
  gzip(data: Uint8Array, callback: Callback<Uint8Array>): void
  gunzip(data: Uint8Array, options: Options & { info: true }, callback: Callback<Info>): void
  zstdCompress?(data: Uint8Array, callback: Callback<Uint8Array>): void
  zstdDecompress?(data: Uint8Array, options: Options, callback: Callback<Uint8Array>): void
}

type Options = { maxOutputLength: number; chunkSize: number }
type Info = { buffer: Uint8Array; engine: { bytesWritten: number } }
type NodeError = Error & { code?: string | undefined }
type Callback<Result> = (error: NodeError | null, result: Result) => void

export const CHUNK_BYTES = 65_536

export function nodeZlib(): NodeZlib | undefined {
  return nodeModule('node:zlib')
}

export function nodeGzip(zlib: NodeZlib): Codec {
  return {
    compress: async (data) => plain(await settled<Uint8Array>((callback) => zlib.gzip(data, callback))),
    async decompress(data, bytesMax) {
      const { buffer, engine } = await decompressed<Info>((callback) =>
        zlib.gunzip(data, { maxOutputLength: bytesMax, chunkSize: CHUNK_BYTES, info: true }, callback),
      )
      // Node silently ignores data after the last member.
      if (engine.bytesWritten !== data.length) {
        throw malformed('data after the end of gzip data')
      }
      return plain(buffer)
    },
  }
}

/** A view without the `slice` of Node buffers, which does not copy. */
export function plain(data: Uint8Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

export function settled<Result>(start: (callback: Callback<Result>) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    start((error, result) => (error === null ? resolve(result) : reject(error)))
  })
}

export async function decompressed<Result>(start: (callback: Callback<Result>) => void): Promise<Result> {
  try {
    return await settled(start)
  } catch (error) {
    throw (error as NodeError).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(error) : damaged(error)
  }
}

export const streamGzip: Codec = {
  compress: (data) => piped(data, new CompressionStream('gzip'), Number.POSITIVE_INFINITY),
  async decompress(data, bytesMax) {
    try {
      return await piped(data, new DecompressionStream('gzip'), bytesMax)
    } catch (error) {
      throw error instanceof CompressedDataError ? error : damaged(error)
    }
  },
}

async function piped(
  data: Uint8Array,
  transform: ReadableWritablePair<Uint8Array, BufferSource>,
  bytesMax: number,
): Promise<Uint8Array> {
  const reader = new Blob([data as Uint8Array<ArrayBuffer>]).stream().pipeThrough(transform).getReader()
  const parts: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return concatBytes(parts)
      length += value.length
      if (length > bytesMax) throw tooLarge()
      parts.push(value)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
