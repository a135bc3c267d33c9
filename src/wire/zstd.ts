import type { ZstdBinding, ZstdStream } from 'zstd-codec/lib/module.js'
import { concatBytes } from '../model/bytes.ts'
import { type Codec, CompressedDataError, damaged, tooLarge } from './codec.ts'
import { zstdFrames } from './zstd-frames.ts'

const LEVEL = 3
/** Data is passed in parts, so that it fits into the memory of the module together with its output. */
const PART_BYTES = 65_536
/** 256 of the shortest blocks, which decompress to 32 MiB: the limit is checked after each part. */
const COMPRESSED_PART_BYTES = 1_024

/**
 * zstd for runtimes without their own: a WebAssembly module with 16 MiB of memory, which aborts if that is
 * too little and is unreliable afterwards. `zstdFrames` rejects what would not fit. After an error of the
 * module,
 * `load` creates a new instance for the next call.
 */
export function portableZstd(load: () => Promise<ZstdBinding> = loadZstdBinding): Codec {
  let instance: Promise<ZstdBinding> | undefined

  async function use<Result>(work: (binding: ZstdBinding) => Result): Promise<Result> {
    instance ??= load()
    const current = instance
    try {
      return work(await current)
    } catch (error) {
      // An error of the module may have left it inconsistent, unlike our own.
      if (!(error instanceof CompressedDataError) && instance === current) instance = undefined
      throw error
    }
  }

  return {
    compress: (data) =>
      use(({ ZstdCompressStreamBinding }) => {
        const output: Uint8Array[] = []
        const keep = (part: Uint8Array) => void output.push(part)
        withStream(new ZstdCompressStreamBinding(), (stream) => {
          let isFine = stream.begin(LEVEL)
          for (const part of partsOf(data, PART_BYTES)) isFine &&= stream.transform(part, keep)
          if (!isFine || !stream.end(keep)) throw new Error('zstd compression failed')
        })
        return concatBytes(output)
      }),
    async decompress(data, bytesMax) {
      const frames = zstdFrames(data, bytesMax)
      return use(({ ZstdDecompressStreamBinding }) => {
        const output: Uint8Array[] = []
        let length = 0
        const keep = (part: Uint8Array) => {
          length += part.length
          if (length <= bytesMax) output.push(part)
        }
        for (const frame of frames) {
          withStream(new ZstdDecompressStreamBinding(), (stream) => {
            let isFine = stream.begin()
            for (const part of partsOf(frame, COMPRESSED_PART_BYTES)) {
              isFine &&= stream.transform(part, keep)
              if (length > bytesMax) throw tooLarge()
            }
            if (!isFine || !stream.end(keep)) throw damaged()
          })
        }
        if (length > bytesMax) throw tooLarge()
        return concatBytes(output)
      })
    },
  }
}

function withStream(stream: ZstdStream, work: (stream: ZstdStream) => void): void {
  try {
    work(stream)
  } finally {
    stream.delete()
  }
}

function* partsOf(data: Uint8Array, length: number): Generator<Uint8Array> {
  for (let start = 0; start < data.length; start += length) yield data.subarray(start, start + length)
}

/** Creates an instance of the WebAssembly module. */
export async function loadZstdBinding(): Promise<ZstdBinding> {
  // Runtimes and bundlers disagree on the named exports of CommonJS modules, but not on the default one.
  const { run } = (await import('./zstd-module.ts')).default
  return new Promise((resolve) => {
    run((module) => {
      // The module is a thenable that resolves to itself, so a promise must not be resolved with it.
      const { then: _then, ...binding } = module as ZstdBinding & { then?: unknown }
      resolve(binding)
    })
  })
}
