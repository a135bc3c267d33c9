import { concatBytes } from '../model/bytes.ts'
import { type Codec, CompressedDataError, damaged, tooLarge } from './codec.ts'
import { zstdFrames } from './zstd-frames.ts'

/** The part of `node:zlib` in use. Its zstd functions exist since Node 22.15. */
export interface NodeZlib {
  gzip(data: Uint8Array, callback: Callback): void
  gunzip(data: Uint8Array, options: Options & { info: true }, callback: InfoCallback): void
  zstdCompress?(data: Uint8Array, callback: Callback): void
  zstdDecompress?(data: Uint8Array, options: Options, callback: Callback): void
}

type Options = { maxOutputLength: number; chunkSize: number }
type NodeError = Error & { code?: string | undefined }
type Callback = (error: NodeError | null, result: Uint8Array) => void
type Info = { buffer: Uint8Array; engine: { bytesWritten: number } }
type InfoCallback = (error: NodeError | null, result: Info) => void

const CHUNK_BYTES = 65_536

/** `node:zlib` if the runtime has it, without an import that bundlers for browsers would follow. */
export function nodeZlib(): NodeZlib | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): unknown } | undefined }
  return process?.getBuiltinModule?.('node:zlib') as NodeZlib | undefined
}

/** gzip on the runtime's thread pool. */
export function nodeGzip(zlib: NodeZlib): Codec {
  return {
    compress: async (data) => plain(await settled<Uint8Array>((callback) => zlib.gzip(data, callback))),
    async decompress(data, bytesMax) {
      const { buffer, engine } = await decompressed<Info>((callback) =>
        zlib.gunzip(data, { maxOutputLength: bytesMax, chunkSize: CHUNK_BYTES, info: true }, callback),
      )
      // Node silently ignores data after the last member.
      if (engine.bytesWritten !== data.length)
        throw new CompressedDataError('malformed', 'data after the end of gzip data')
      return plain(buffer)
    },
  }
}

/** zstd on the runtime's thread pool; undefined if the runtime lacks it. */
export function nodeZstd({ zstdCompress, zstdDecompress }: NodeZlib): Codec | undefined {
  if (zstdCompress === undefined || zstdDecompress === undefined) return undefined
  return {
    compress: async (data) => plain(await settled<Uint8Array>((callback) => zstdCompress(data, callback))),
    async decompress(data, bytesMax) {
      const parts: Uint8Array[] = []
      let budget = bytesMax
      for (const { bytes } of zstdFrames(data, bytesMax)) {
        // To Node, 0 is no limit. The excess byte is rejected below.
        const options = { maxOutputLength: Math.max(budget, 1), chunkSize: CHUNK_BYTES }
        const part = await decompressed<Uint8Array>((callback) => zstdDecompress(bytes, options, callback))
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

function settled<Result>(
  start: (callback: (error: NodeError | null, result: Result) => void) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    start((error, result) => (error === null ? resolve(result) : reject(error)))
  })
}

async function decompressed<Result>(
  start: (callback: (error: NodeError | null, result: Result) => void) => void,
): Promise<Result> {
  try {
    return await settled(start)
  } catch (error) {
    throw (error as NodeError).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(error) : damaged(error)
  }
}
