import { concatBytes } from '../model/bytes.ts'
import { type Codec, CompressedDataError, type Compression, damaged, tooLarge } from './codec.ts'
import { zstdFrames } from './zstd-frames.ts'

/**
 * The codec of the runtime: of `node:zlib`, or else gzip of `CompressionStream`, which browsers and workers
 * have. Undefined for zstd where the runtime lacks it: before Node 22.15, and in browsers.
 */
export function platformCodec(algorithm: Compression): Codec | undefined {
  const zlib = nodeZlib()
  if (algorithm === 'zstd') return zlib && nodeZstd(zlib)
  return zlib === undefined ? streamGzip : nodeGzip(zlib)
}

/** The part of `node:zlib` in use. Its zstd functions exist since Node 22.15. */
interface NodeZlib {
  gzip(data: Uint8Array, callback: Callback<Uint8Array>): void
  gunzip(data: Uint8Array, options: Options & { info: true }, callback: Callback<Info>): void
  zstdCompress?(data: Uint8Array, callback: Callback<Uint8Array>): void
  zstdDecompress?(data: Uint8Array, options: Options, callback: Callback<Uint8Array>): void
}

type Options = { maxOutputLength: number; chunkSize: number }
type Info = { buffer: Uint8Array; engine: { bytesWritten: number } }
type NodeError = Error & { code?: string | undefined }
type Callback<Result> = (error: NodeError | null, result: Result) => void

const CHUNK_BYTES = 65_536

/** `node:zlib` if the runtime has it, without an import that bundlers for browsers would follow. */
export function nodeZlib(): NodeZlib | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): unknown } | undefined }
  return process?.getBuiltinModule?.('node:zlib') as NodeZlib | undefined
}

/** gzip on the runtime's thread pool. */
function nodeGzip(zlib: NodeZlib): Codec {
  return {
    compress: async (data) => plain(await settled<Uint8Array>((callback) => zlib.gzip(data, callback))),
    async decompress(data, bytesMax) {
      const { buffer, engine } = await decompressed<Info>((callback) =>
        zlib.gunzip(data, { maxOutputLength: bytesMax, chunkSize: CHUNK_BYTES, info: true }, callback),
      )
      // Node silently ignores data after the last member.
      if (engine.bytesWritten !== data.length) {
        throw new CompressedDataError('malformed', 'data after the end of gzip data')
      }
      return plain(buffer)
    },
  }
}

/** zstd on the runtime's thread pool; undefined if the runtime lacks it. */
function nodeZstd({ zstdCompress, zstdDecompress }: NodeZlib): Codec | undefined {
  if (zstdCompress === undefined || zstdDecompress === undefined) return undefined
  return {
    compress: async (data) => plain(await settled<Uint8Array>((callback) => zstdCompress(data, callback))),
    async decompress(data, bytesMax) {
      const parts: Uint8Array[] = []
      let budget = bytesMax
      for (const frame of zstdFrames(data, bytesMax)) {
        // To Node, 0 is no limit. The excess byte is rejected below.
        const options = { maxOutputLength: Math.max(budget, 1), chunkSize: CHUNK_BYTES }
        const part = await decompressed<Uint8Array>((callback) => zstdDecompress(frame, options, callback))
        budget -= part.length
        if (budget < 0) throw tooLarge()
        parts.push(part)
      }
      return plain(concatBytes(parts))
    },
  }
}

/** A view without the `slice` of Node buffers, which does not copy. */
function plain(data: Uint8Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

function settled<Result>(start: (callback: Callback<Result>) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    start((error, result) => (error === null ? resolve(result) : reject(error)))
  })
}

async function decompressed<Result>(start: (callback: Callback<Result>) => void): Promise<Result> {
  try {
    return await settled(start)
  } catch (error) {
    throw (error as NodeError).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(error) : damaged(error)
  }
}

/** gzip of the Web's streams. */
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
