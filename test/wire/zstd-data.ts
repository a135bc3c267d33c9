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

export function blockHeader(type: number, size: number, last: boolean): number[] {
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
