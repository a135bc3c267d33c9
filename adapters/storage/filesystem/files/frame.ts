import { crc32 } from 'node:zlib'
import { type BlockPage, pagesOf } from '../../../../src/storage/block-pages.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { ByteReader, type ByteWriter } from './bytes.ts'

/** Checksum, length of the payload, length of the data that follow it. */
export const FRAME_HEADER_BYTES = 12

/** Reserves the header of a frame. Returns the value that {@link endFrame} needs. */
export function beginFrame(writer: ByteWriter): number {
  const start = writer.length
  writer.skip(FRAME_HEADER_BYTES)
  return start
}

/** Completes the header after the payload was written. The data, which have their own checksums, follow. */
export function endFrame(writer: ByteWriter, start: number, salt: number, dataBytes = 0): void {
  const frame = writer.bytes.subarray(start)
  frame.writeUInt32LE(frame.length - FRAME_HEADER_BYTES, 4)
  frame.writeUInt32LE(dataBytes, 8)
  frame.writeUInt32LE(crc32(frame.subarray(4), salt), 0)
}

/**
 * Returns the end of the payload of the frame at `offset`, by its header; infinite if the header is
 * truncated.
 */
export function payloadEnd(bytes: Buffer, offset: number): number {
  if (offset + FRAME_HEADER_BYTES > bytes.length) return Number.POSITIVE_INFINITY
  return offset + FRAME_HEADER_BYTES + bytes.readUInt32LE(offset + 4)
}

/**
 * Returns the end of the data of the frame at `offset`, by its header; infinite if the header is truncated.
 */
export function frameEnd(bytes: Buffer, offset: number): number {
  const end = payloadEnd(bytes, offset)
  return end === Number.POSITIVE_INFINITY ? end : end + bytes.readUInt32LE(offset + 8)
}

/**
 * The payload of the frame at `offset`, as a view; undefined if the payload is incomplete or its checksum
 * does not match.
 */
export function framePayload(bytes: Buffer, offset: number, salt: number): Buffer | undefined {
  const end = payloadEnd(bytes, offset)
  if (end > bytes.length) return undefined
  if (crc32(bytes.subarray(offset + 4, end), salt) !== bytes.readUInt32LE(offset)) return undefined
  return bytes.subarray(offset + FRAME_HEADER_BYTES, end)
}

/** The minimum size of a page except the last one: what a read of one record reads and checks. */
const PAGE_BYTES = 8 * 1024

/** A part of the data of a frame, with its own checksum. */
export interface CheckedPage {
  /** Offset in the data. */
  readonly offset: number
  readonly bytes: number
  readonly crc: number
}

/** A page as the page table describes it. */
interface DataPage extends CheckedPage {
  /** The number of its records. Undefined in the last page, as below. */
  readonly records: number | undefined
  readonly lastTimestamp: number | undefined
}

/** The beginning of a frame with data: the payload after its page table, and the pages. */
export interface FrameHead {
  readonly fields: Buffer
  readonly pages: readonly DataPage[]
  readonly dataBytes: number
}

/** A complete frame. `data` is a view. */
export interface DataFrame extends FrameHead {
  readonly data: Uint8Array
}

/**
 * Writes the page table, with which the payload of a frame with data begins. The data are those of the
 * blocks; only a single block is divided into pages.
 */
export function writePageTable(writer: ByteWriter, blocks: readonly StoredBlock[], salt: number): void {
  const pages = blocks.length === 1 ? pagesOf(blocks[0]!, PAGE_BYTES) : []
  if (pages.length <= 1) {
    writer.varint(1)
    writer.u32(blocks.reduce((crc, { data }) => crc32(data, crc), salt))
    return
  }
  const [{ data }] = blocks as [StoredBlock]
  writer.varint(pages.length)
  for (const [index, { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp }] of pages.entries()) {
    writer.u32(crc32(data.subarray(offset, offset + bytes), salt))
    if (index === pages.length - 1) return
    writer.varint(bytes)
    writer.varint(endSeqNum - firstSeqNum)
    writer.varint(lastTimestamp)
  }
}

/**
 * Reads the beginning of a frame; `bytes` may end before its data. Throws `RangeError` if it is incomplete or
 * damaged.
 */
export function readFrameHead(bytes: Buffer, offset: number, salt: number): FrameHead {
  const payload = framePayload(bytes, offset, salt)
  if (payload === undefined) throw new RangeError('a frame is incomplete or damaged')
  const dataBytes = bytes.readUInt32LE(offset + 8)
  if (dataBytes === 0) return { fields: payload, pages: [], dataBytes }
  const reader = new ByteReader(payload)
  const pages = readPages(reader, dataBytes)
  return { fields: payload.subarray(reader.offset), pages, dataBytes }
}

function readPages(reader: ByteReader, dataBytes: number): DataPage[] {
  const count = reader.varint()
  if (count === 0 || count > reader.left) throw new RangeError('a page table is malformed')
  const pages: DataPage[] = []
  let offset = 0
  for (let index = 1; index < count; index++) {
    const crc = reader.u32()
    const bytes = reader.varint()
    pages.push({ offset, bytes, crc, records: reader.varint(), lastTimestamp: reader.varint() })
    offset += bytes
  }
  const bytes = dataBytes - offset
  if (bytes < 0) throw new RangeError('a page table is malformed')
  pages.push({ offset, bytes, crc: reader.u32(), records: undefined, lastTimestamp: undefined })
  return pages
}

/** Reads the frame at `offset`. Throws `RangeError` if it or its data are incomplete or damaged. */
export function readFrame(bytes: Buffer, offset: number, salt: number): DataFrame {
  const head = readFrameHead(bytes, offset, salt)
  const start = payloadEnd(bytes, offset)
  if (start + head.dataBytes > bytes.length) throw new RangeError('a frame is incomplete or damaged')
  // Not a `Buffer`, which no other storage returns.
  const data = new Uint8Array(bytes.buffer, bytes.byteOffset + start, head.dataBytes)
  checkPages(data, head.pages, salt)
  return { fields: head.fields, pages: head.pages, dataBytes: head.dataBytes, data }
}

/** Throws `RangeError` unless the data of consecutive pages match their checksums. */
export function checkPages(data: Uint8Array, pages: readonly CheckedPage[], salt: number): void {
  const start = pages[0]?.offset ?? 0
  for (const { offset, bytes, crc } of pages) {
    // Most frames have a single page, and an opening reads hundreds of thousands: a view is not free.
    const isWhole = offset === start && bytes === data.length
    const page = isWhole ? data : data.subarray(offset - start, offset - start + bytes)
    if (crc32(page, salt) !== crc) throw new RangeError('data do not match their checksum')
  }
}

/**
 * Erases everything in `bytes` except the data of these ascending blocks, which are views of it: callers may
 * reach the rest through `ArrayBufferView.buffer`. Copies the data if it would keep much more memory alive.
 */
export function isolateBlocks(bytes: Buffer, blocks: readonly StoredBlock[]): readonly StoredBlock[] {
  const wanted = blocks.reduce((sum, { data }) => sum + data.length, 0)
  if (wanted < bytes.length / 2)
    return blocks.map((block) => ({ ...block, data: new Uint8Array(block.data) }))
  let end = 0
  for (const { data } of blocks) {
    const start = data.byteOffset - bytes.byteOffset
    if (start > end) bytes.fill(0, end, start)
    end = start + data.length
  }
  if (end < bytes.length) bytes.fill(0, end)
  return blocks
}

/** The pages of a block that makes up the data of its frame. */
export function blockPages(
  pages: readonly DataPage[],
  { firstSeqNum, endSeqNum, lastTimestamp }: Omit<StoredBlock, 'data'>,
): readonly (BlockPage & CheckedPage)[] {
  let next = firstSeqNum
  return pages.map(({ offset, bytes, crc, records, lastTimestamp: timestamp = lastTimestamp }) => {
    const first = next
    next = records === undefined ? endSeqNum : first + records
    return { offset, bytes, crc, firstSeqNum: first, endSeqNum: next, lastTimestamp: timestamp }
  })
}
