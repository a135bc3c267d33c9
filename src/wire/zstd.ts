import type { ZstdBinding, ZstdStream } from 'zstd-codec/lib/module.js'
import { concatBytes } from '../model/bytes.ts'
import {
  CHUNK_BYTES,
  type Codec,
  CompressedDataError,
  damaged,
  decompressed,
  malformed,
  type NodeZlib,
  plain,
  settled,
  tooLarge,
} from './codecs.ts'

/** zstd of the runtime or of a library, both behind the same guard against data that is costly to decode. */

/** zstd on the thread pool of Node; undefined before Node 22.15. */
export function nativeZstd({ zstdCompress, zstdDecompress }: NodeZlib): Codec | undefined {
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

const LEVEL = 3
/** Data is passed in parts, so that it fits into the memory of the module together with its output. */
const PART_BYTES = 65_536
/** 256 of the shortest blocks, which decompress to 32 MiB: the limit is checked after each part. */
const COMPRESSED_PART_BYTES = 1_024

/**
 * zstd for runtimes without their own: a WebAssembly module with 16 MiB of memory, which aborts if that is
 * too little and is unreliable afterwards. `zstdFrames` rejects what would not fit. After an error of the
 * module, `load` creates a new instance for the next call.
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

/**
 * The largest useful window. A frame may request gigabytes, which a decoder would allocate at once, but
 * matches reach back only to the start of the output, and no caller allows more output than this.
 */
const WINDOW_BYTES_MAX = 2_097_152
const WINDOW_DESCRIPTOR_OF_MAX = 11 << 3

const MAGIC = 0xfd2f_b528
const SKIPPABLE_MAGIC = 0x184d_2a50
const MAGIC_LENGTH = 4
const CHECKSUM_LENGTH = 4
const BLOCK_HEADER_LENGTH = 3
const BLOCK_BYTES_MAX = 131_072
/** Each frame costs a decoder its set-up, and can be as short as nine bytes. */
const FRAMES_MAX = 256
/** A block can be as short as three bytes. Encoders write one for each 128 KiB of input or flush. */
const BLOCKS_MAX = 16_384
const FLAG_SINGLE_SEGMENT = 0x20
const FLAG_RESERVED = 0x08
const FLAG_CHECKSUM = 0x04
const DICTIONARY_ID_LENGTHS = [0, 1, 2, 4]
const RAW_BLOCK = 0
const RLE_BLOCK = 1
const COMPRESSED_BLOCK = 2

const CUT_SHORT = 'zstd data is cut short'

/**
 * The frames of zstd data (RFC 8878) without skippable ones, located without decompressing them: data that
 * would cost a decoder too much is rejected before. Windows are capped at {@link WINDOW_BYTES_MAX}. Throws
 * {@link CompressedDataError} if the data is malformed, truncated, needs a dictionary, has more than 256
 * frames or 16,384 blocks, or certainly decompresses to more than `bytesMax`, which must not exceed {@link
 * WINDOW_BYTES_MAX}.
 */
export function zstdFrames(data: Uint8Array, bytesMax: number): Uint8Array[] {
  const frames: Uint8Array[] = []
  const left: Budget = { bytes: bytesMax, blocks: BLOCKS_MAX }
  let offset = 0
  if (data.length === 0) throw malformed('no zstd frame')
  while (offset < data.length) {
    const view = new DataView(data.buffer, data.byteOffset + offset, data.length - offset)
    const magic = read(view, 0, MAGIC_LENGTH)
    if ((magic & 0xffff_fff0) >>> 0 === SKIPPABLE_MAGIC) {
      offset += 2 * MAGIC_LENGTH + read(view, MAGIC_LENGTH, 4)
      if (offset > data.length) throw malformed(CUT_SHORT)
      continue
    }
    if (magic !== MAGIC) throw malformed('not zstd data')
    if (frames.length === FRAMES_MAX) throw malformed('too many zstd frames')
    const frame = readFrame(data.subarray(offset), view, left)
    offset += frame.length
    frames.push(frame)
  }
  return frames
}

interface Budget {
  bytes: number
  blocks: number
}

function readFrame(data: Uint8Array, view: DataView, left: Budget): Uint8Array {
  const descriptor = read(view, MAGIC_LENGTH, 1)
  if ((descriptor & FLAG_RESERVED) !== 0) throw malformed('reserved bit of a zstd frame')
  const singleSegment = (descriptor & FLAG_SINGLE_SEGMENT) !== 0
  let offset = MAGIC_LENGTH + 1
  const windowOffset = offset
  if (!singleSegment) offset += 1
  const dictionaryIdLength = DICTIONARY_ID_LENGTHS[descriptor & 3]!
  if (dictionaryIdLength > 0 && read(view, offset, dictionaryIdLength) !== 0) {
    throw malformed('zstd dictionaries are not supported')
  }
  offset += dictionaryIdLength
  const contentSizeLength = descriptor >> 6 === 0 ? (singleSegment ? 1 : 0) : 1 << (descriptor >> 6)
  const contentSize =
    contentSizeLength === 0
      ? undefined
      : read(view, offset, contentSizeLength) + (contentSizeLength === 2 ? 256 : 0)
  if (contentSize !== undefined && contentSize > left.bytes) throw tooLarge()
  const headerLength = offset + contentSizeLength

  const windowBytes = singleSegment ? contentSize! : windowOf(read(view, windowOffset, 1))
  const blocks = readBlocks(view, headerLength, Math.min(windowBytes, BLOCK_BYTES_MAX), left)
  left.bytes -= contentSize ?? blocks.bytesMin
  let end = blocks.end
  if ((descriptor & FLAG_CHECKSUM) !== 0) end += CHECKSUM_LENGTH
  if (end > data.length) throw malformed(CUT_SHORT)
  if (singleSegment || windowBytes <= WINDOW_BYTES_MAX) return data.subarray(0, end)
  const window = Uint8Array.of(WINDOW_DESCRIPTOR_OF_MAX)
  return concatBytes([data.subarray(0, windowOffset), window, data.subarray(windowOffset + 1, end)])
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

function readBlocks(
  view: DataView,
  start: number,
  blockBytesMax: number,
  left: Budget,
): { end: number; bytesMin: number } {
  let offset = start
  let bytesMin = 0
  for (;;) {
    if (--left.blocks < 0) throw malformed('too many zstd blocks')
    const header = read(view, offset, BLOCK_HEADER_LENGTH)
    const type = (header >> 1) & 3
    const size = header >> 3
    if (size > blockBytesMax) throw malformed('a zstd block is too large')
    if (type !== RAW_BLOCK && type !== RLE_BLOCK && type !== COMPRESSED_BLOCK) {
      throw malformed('unknown type of zstd block')
    }
    if (type !== COMPRESSED_BLOCK) bytesMin += size
    if (bytesMin > left.bytes) throw tooLarge()
    offset += BLOCK_HEADER_LENGTH + (type === RLE_BLOCK ? 1 : size)
    if ((header & 1) !== 0) return { end: offset, bytesMin }
  }
}

/** A little-endian number of 1 to 8 bytes, rounded beyond 2^53, where it exceeds every limit. */
function read(view: DataView, offset: number, length: number): number {
  if (offset + length > view.byteLength) throw malformed(CUT_SHORT)
  let value = 0
  for (let i = length - 1; i >= 0; i--) value = value * 256 + view.getUint8(offset + i)
  return value
}
