import type { ZstdBinding, ZstdStream, ZstdVector } from 'zstd-codec/lib/module.js'
import { concatBytes } from '../model/bytes.ts'
import { type Codec, CompressedDataError, damaged, tooLarge } from './codec.ts'
import { type ZstdFrame, zstdFrames } from './zstd-frames.ts'

type ZstdCodec = InstanceType<ZstdBinding['ZstdCodec']>

const LEVEL = 3
/**
 * The largest input that is compressed at once. Longer input is compressed in parts, to fit into the memory
 * of the codec.
 */
const ONE_SHOT_BYTES_MAX = 2_097_152
const PART_BYTES = 262_144

/**
 * zstd for runtimes without their own: a WebAssembly module with 16 MiB of memory, which aborts if that is
 * too little and is unreliable afterwards. `zstdFrames` rejects declared sizes and windows that would not
 * fit. After an abort, `load` creates a new instance for the next call.
 */
export function portableZstd(load: () => Promise<ZstdBinding>): Codec {
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
    compress: (data) => use((binding) => compress(binding, data)),
    decompress: async (data, bytesMax) => {
      const frames = zstdFrames(data, bytesMax)
      return use((binding) => {
        let budget = bytesMax
        const parts = frames.map((frame) => {
          const part = decompress(binding, frame, budget)
          budget -= part.length
          return part
        })
        return concatBytes(parts)
      })
    },
  }
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

function compress(binding: ZstdBinding, data: Uint8Array): Uint8Array {
  if (data.length > ONE_SHOT_BYTES_MAX) return compressInParts(binding, data)
  return withCodec(binding, data, (codec, source, target) => {
    target.resize(codec.compressBound(data.length), 0)
    const length = codec.compress(target, source, LEVEL)
    if (length < 0) throw new Error('zstd compression failed')
    target.resize(length, 0)
    return binding.cloneAsTypedArray(target)
  })
}

function compressInParts(binding: ZstdBinding, data: Uint8Array): Uint8Array {
  return withStream(new binding.ZstdCompressStreamBinding(), (stream) => {
    const parts: Uint8Array[] = []
    const keep = (part: Uint8Array) => {
      parts.push(part)
    }
    let ok = stream.begin(LEVEL)
    for (let start = 0; ok && start < data.length; start += PART_BYTES) {
      ok = stream.transform(data.subarray(start, start + PART_BYTES), keep)
    }
    if (!ok || !stream.end(keep)) throw new Error('zstd compression failed')
    return concatBytes(parts)
  })
}

function decompress(binding: ZstdBinding, frame: ZstdFrame, bytesMax: number): Uint8Array {
  const { contentSize } = frame
  // Preceding frames without a declared size may have left less than this one declares.
  if (contentSize !== undefined && contentSize > bytesMax) throw tooLarge()
  // The codec reports a size of 0 as a failure.
  if (contentSize === undefined || contentSize === 0) return decompressInParts(binding, frame, bytesMax)
  return withCodec(binding, frame.bytes, (codec, source, target) => {
    target.resize(contentSize, 0)
    if (codec.decompress(target, source) !== contentSize) throw damaged()
    return binding.cloneAsTypedArray(target)
  })
}

function decompressInParts(binding: ZstdBinding, { bytes, cuts }: ZstdFrame, bytesMax: number): Uint8Array {
  return withStream(new binding.ZstdDecompressStreamBinding(), (stream) => {
    const parts: Uint8Array[] = []
    let total = 0
    const keep = (part: Uint8Array) => {
      total += part.length
      parts.push(part)
    }
    let ok = stream.begin()
    let start = 0
    for (const end of [...cuts, bytes.length]) {
      ok &&= stream.transform(bytes.subarray(start, end), keep)
      if (total > bytesMax) throw tooLarge()
      start = end
    }
    if (!ok || !stream.end(keep)) throw damaged()
    return concatBytes(parts)
  })
}

function withCodec<Result>(
  binding: ZstdBinding,
  data: Uint8Array,
  work: (codec: ZstdCodec, source: ZstdVector, target: ZstdVector) => Result,
): Result {
  const codec = new binding.ZstdCodec()
  const source = new binding.VectorU8()
  const target = new binding.VectorU8()
  try {
    binding.cloneToVector(source, data)
    return work(codec, source, target)
  } finally {
    source.delete()
    target.delete()
    codec.delete()
  }
}

function withStream<Result>(stream: ZstdStream, work: (stream: ZstdStream) => Result): Result {
  try {
    return work(stream)
  } finally {
    stream.delete()
  }
}
