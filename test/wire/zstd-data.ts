/** Handmade zstd frames, with content that no encoder produces. */
export interface ZstdFrameParts {
  /** The byte of the window size. If absent, the frame is a single segment, whose window is its content. */
  window?: number
  contentSize?: bigint
  dictionaryId?: number
  reservedBit?: boolean
  blocks: Uint8Array[]
}

export function zstdFrame({
  window,
  contentSize,
  dictionaryId,
  reservedBit,
  blocks,
}: ZstdFrameParts): Uint8Array {
  const singleSegment = window === undefined
  const descriptor =
    (contentSize === undefined ? 0 : 3 << 6) |
    (singleSegment ? 0x20 : 0) |
    (reservedBit ? 0x08 : 0) |
    (dictionaryId === undefined ? 0 : 3)
  const contentSizeBytes = contentSize === undefined ? (singleSegment ? 1 : 0) : 8
  return Uint8Array.from([
    ...littleEndian(0xfd2fb528n, 4),
    descriptor,
    ...(singleSegment ? [] : [window]),
    ...(dictionaryId === undefined ? [] : littleEndian(BigInt(dictionaryId), 4)),
    ...littleEndian(contentSize ?? 0n, contentSizeBytes),
    ...blocks.flatMap((block) => [...block]),
  ])
}

export function rawBlock(content: Uint8Array, last: boolean): Uint8Array {
  return Uint8Array.from([...blockHeader(0, content.length, last), ...content])
}

/** A block of four bytes that decompresses to `length` bytes. */
export function rleBlock(byte: number, length: number, last: boolean): Uint8Array {
  return Uint8Array.from([...blockHeader(1, length, last), byte])
}

function blockHeader(type: number, size: number, last: boolean): number[] {
  return littleEndian(BigInt((size << 3) | (type << 1) | (last ? 1 : 0)), 3)
}

export function skippableFrame(content: Uint8Array): Uint8Array {
  return Uint8Array.from([
    ...littleEndian(0x184d2a50n, 4),
    ...littleEndian(BigInt(content.length), 4),
    ...content,
  ])
}

function littleEndian(value: bigint, length: number): number[] {
  return Array.from({ length }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn))
}

const WINDOW_1_MIB = 10 << 3
const BLOCK_BYTES_MAX = 131_072

/** Blocks of four bytes that decompress to 128 KiB each. */
function zeros(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => rleBlock(0, BLOCK_BYTES_MAX, index === count - 1))
}

const CONTENT = Uint8Array.of(1, 2, 3)
const small = zstdFrame({ window: 0, blocks: [rawBlock(CONTENT, true)] })

/**
 * Data of an attacker, and whether it is rejected for its size or as malformed. A decoder that trusts it
 * allocates gigabytes, loops or waits.
 */
export const HOSTILE_ZSTD: readonly [name: string, data: Uint8Array, reason: 'too-large' | 'malformed'][] = [
  [
    '64 KiB that decompress to 2 GiB',
    zstdFrame({ window: WINDOW_1_MIB, blocks: zeros(16_384) }),
    'too-large',
  ],
  [
    'a frame that declares 2^64 - 1 bytes',
    zstdFrame({ contentSize: 2n ** 64n - 1n, blocks: [] }),
    'too-large',
  ],
  ['a frame that declares 4 GiB and has 3 bytes', declaring(1n << 32n), 'too-large'],
  ['a frame that declares fewer bytes than it has', declaring(2n), 'malformed'],
  ['a frame that declares more bytes than it has', declaring(2_000_000n), 'malformed'],
  [
    'a frame of 64 MiB that declares 10 bytes',
    zstdFrame({ window: WINDOW_1_MIB, contentSize: 10n, blocks: zeros(512) }),
    'too-large',
  ],
  [
    'frames of 1 MiB, one after another',
    joined(Array.from({ length: 64 }, () => zstdFrame({ window: WINDOW_1_MIB, blocks: zeros(8) }))),
    'too-large',
  ],
  ['thousands of frames', joined(Array.from({ length: 10_000 }, () => small)), 'malformed'],
  [
    'thousands of skippable frames and nothing else',
    joined(Array.from({ length: 10_000 }, () => skippableFrame(new Uint8Array(0)))).subarray(0, -1),
    'malformed',
  ],
  ['a skippable frame of 4 GiB that has not arrived', skippableFrame(CONTENT).fill(0xff, 4, 8), 'malformed'],
  [
    'a frame inside a frame that is cut off',
    zstdFrame({ window: 0, blocks: [rawBlock(small, false)] }),
    'malformed',
  ],
  ['a truncated frame', small.subarray(0, -1), 'malformed'],
  ['a header and nothing else', small.subarray(0, 6), 'malformed'],
  ['a dictionary', zstdFrame({ window: 0, dictionaryId: 7, blocks: [rawBlock(CONTENT, true)] }), 'malformed'],
  ['empty blocks without end', zstdFrame({ window: 0, blocks: emptyBlocks(20_000) }), 'malformed'],
  ['a window of 3.75 TiB and a damaged block', damagedBlock(0xff), 'malformed'],
]

function declaring(contentSize: bigint): Uint8Array {
  return zstdFrame({ window: WINDOW_1_MIB, contentSize, blocks: [rawBlock(CONTENT, true)] })
}

function emptyBlocks(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => rawBlock(new Uint8Array(0), index === count - 1))
}

function damagedBlock(window: number): Uint8Array {
  return zstdFrame({ window, blocks: [Uint8Array.from([...blockHeader(2, 5, true), 1, 2, 3, 4, 5])] })
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}
