import { EMPTY_BYTES } from '../../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import {
  beginFrame,
  endFrame,
  type FrameHead,
  framePayload,
  readFrame,
  readFrameHead,
  writePageTable,
} from '../files/frame.ts'
import { appendOf, decodeAppendFrame } from '../journal/journal-blocks.ts'
import { readBlock, readList, writeBlock } from '../state/field-codec.ts'
import type { BlockFacts } from '../state/log.ts'
import type { SegmentFacts } from '../state/segment.ts'

/** A chunk ends once its data has this many bytes: the least that a read of one record reads. */
export const CHUNK_BYTES = 64 * 1024

/** A chunk as the index of its run describes it. */
export interface ChunkFacts {
  readonly offset: number
  readonly bytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  readonly meteredBytes: number
  readonly minExpiry: number | null
}

/** A block as its chunk describes it. */
export interface ChunkBlock extends BlockFacts {
  readonly dataBytes: number
}

/** The frame of a chunk without its data. */
interface ChunkFrame {
  readonly log: number
  readonly blocks: readonly ChunkBlock[]
}

/** The frame before the data of the blocks. */
export function encodeChunkFrame(log: number, blocks: readonly StoredBlock[], salt: number): Buffer {
  const writer = new ByteWriter(64 + blocks.length * 32)
  const start = beginFrame(writer)
  const dataBytes = blocks.reduce((sum, { data }) => sum + data.length, 0)
  if (dataBytes > 0) writePageTable(writer, blocks, salt)
  writer.varint(log)
  writer.varint(blocks.length)
  for (const block of blocks) {
    writeBlock(writer, block)
    writer.varint(block.data.length)
  }
  endFrame(writer, start, salt, dataBytes)
  return writer.bytes
}

/**
 * The blocks of a chunk, with views of its data. Throws `RangeError` if the chunk is damaged or of another
 * log.
 */
export function decodeChunk(bytes: Buffer, log: number, salt: number): StoredBlock[] {
  const { fields, data } = readFrame(bytes, 0, salt)
  const blocks = readChunkBlocks(fields, log)
  // Views beyond the data would expose unrelated memory.
  if (blocks.reduce((sum, { dataBytes }) => sum + dataBytes, 0) !== data.length) {
    throw new RangeError('the length of a chunk does not match its blocks')
  }
  let offset = data.byteOffset
  return blocks.map(({ dataBytes, ...facts }) => {
    const block = { ...facts, data: new Uint8Array(data.buffer, offset, dataBytes) }
    offset += dataBytes
    return block
  })
}

/**
 * The blocks of a chunk without their data, which `bytes` need not contain. Throws `RangeError` if the frame
 * is damaged or of another log.
 */
export function decodeChunkBlocks(bytes: Buffer, log: number, salt: number): readonly ChunkBlock[] {
  return readChunkBlocks(readFrameHead(bytes, 0, salt).fields, log)
}

/** The blocks by the fields of a chunk's frame. Throws `RangeError` if they are of another log. */
function readChunkBlocks(fields: Buffer, log: number): readonly ChunkBlock[] {
  const frame = readChunkFields(fields)
  if (frame.log !== log) throw new RangeError('a chunk belongs to another log')
  return frame.blocks
}

/** The log and the blocks by the fields of a chunk's frame. Throws `RangeError` if they are malformed. */
export function readChunkFields(fields: Buffer): ChunkFrame {
  const reader = new ByteReader(fields)
  const log = reader.varint()
  return { log, blocks: readList(reader, () => ({ ...readBlock(reader), dataBytes: reader.varint() })) }
}

export function encodeIndex(chunks: readonly ChunkFacts[], salt: number): Buffer {
  const writer = new ByteWriter(64 + chunks.length * 32)
  const start = beginFrame(writer)
  writer.varint(chunks.length)
  for (const chunk of chunks) {
    writer.varint(chunk.bytes)
    writer.varint(chunk.firstSeqNum)
    writer.varint(chunk.endSeqNum - chunk.firstSeqNum)
    writer.varint(chunk.lastTimestamp)
    writer.varint(chunk.meteredBytes)
    writer.optional(chunk.minExpiry)
  }
  endFrame(writer, start, salt)
  return writer.bytes
}

/** The chunks of a run that begins at `offset`. Throws `RangeError` if the index is damaged. */
export function decodeIndex(bytes: Buffer, offset: number, salt: number): ChunkFacts[] {
  const payload = framePayload(bytes, 0, salt)
  if (payload === undefined) throw new RangeError('the index of a run is damaged')
  const reader = new ByteReader(payload)
  let next = offset
  return readList(reader, () => {
    const start = next
    next = reader.varintAfter(start)
    const firstSeqNum = reader.varint()
    return {
      offset: start,
      bytes: next - start,
      firstSeqNum,
      endSeqNum: reader.varintAfter(firstSeqNum),
      lastTimestamp: reader.varint(),
      meteredBytes: reader.varint(),
      minExpiry: reader.optional(),
    }
  })
}

/**
 * The blocks of a chunk, with views of its data; in an adopted journal a chunk is the frame of one append.
 * Throws `RangeError` if the chunk is damaged or of another log.
 */
export function decodeSegmentChunk(home: SegmentFacts, bytes: Buffer, log: number): StoredBlock[] {
  if (home.journal === 0) return decodeChunk(bytes, log, home.salt)
  const frame = decodeAppendFrame(bytes, home.salt)
  if (frame.log !== log) throw new RangeError('a chunk belongs to another log')
  return [frame.block]
}

/**
 * The only block of a chunk, without its data; undefined if it has several. Throws `RangeError` if the chunk
 * is of another log.
 */
export function onlyBlockOf(home: SegmentFacts, head: FrameHead, log: number): BlockFacts | undefined {
  if (home.journal === 0) {
    const blocks = readChunkBlocks(head.fields, log)
    return blocks.length === 1 ? blocks[0] : undefined
  }
  const frame = appendOf(head, EMPTY_BYTES)
  if (frame.log !== log) throw new RangeError('a chunk belongs to another log')
  return frame.block
}
