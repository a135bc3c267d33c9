import { crc32 } from 'node:zlib'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { readBlock, readList, writeBlock } from './field-codec.ts'
import { beginFrame, endFrame, FRAME_HEADER_BYTES, frameEnd, framePayload } from './frame.ts'
import type { BlockFacts } from './log.ts'

/** A chunk is ended when its data is so long: what is read at least to find one record. */
export const CHUNK_BYTES = 64 * 1024

/** What the index of a run says of a chunk. */
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

interface ChunkFrame {
  readonly log: number
  /** Of the data. */
  readonly crc: number
  readonly blocks: readonly ChunkBlock[]
}

/** The frame that goes in front of the blocks' data. */
export function encodeChunkFrame(log: number, blocks: readonly StoredBlock[], salt: number): Buffer {
  const writer = new ByteWriter(64 + blocks.length * 32)
  const start = beginFrame(writer)
  writer.varint(log)
  writer.u32(blocks.reduce((crc, { data }) => crc32(data, crc), salt))
  writer.varint(blocks.length)
  for (const block of blocks) {
    writeBlock(writer, block)
    writer.varint(block.data.length)
  }
  endFrame(writer, start, salt)
  return writer.bytes
}

/** How many bytes of a chunk its description takes; `bytes` are its first, {@link FRAME_HEADER_BYTES} at least. */
export function chunkFrameBytes(bytes: Buffer): number {
  return frameEnd(bytes, 0)
}

/** The description of a chunk of the log. Throws `RangeError` when it is something else, or not whole. */
export function decodeChunkBlocks(bytes: Buffer, log: number, salt: number): readonly ChunkBlock[] {
  return decodeFrame(bytes, log, salt).blocks
}

/** The blocks of a chunk, with views of its data. Throws `RangeError` when it is something else, or not whole. */
export function decodeChunk(bytes: Buffer, log: number, salt: number): StoredBlock[] {
  const { crc, blocks } = decodeFrame(bytes, log, salt)
  const data = bytes.subarray(frameEnd(bytes, 0))
  if (crc32(data, salt) !== crc) throw new RangeError('the data of a chunk is not what was written')
  // Views behind the data would be of memory that is somebody else's.
  if (blocks.reduce((sum, { dataBytes }) => sum + dataBytes, 0) !== data.length) {
    throw new RangeError('the data of a chunk has another length than its blocks')
  }
  let offset = data.byteOffset
  return blocks.map(({ dataBytes, ...facts }) => {
    const block = { ...facts, data: new Uint8Array(data.buffer, offset, dataBytes) }
    offset += dataBytes
    return block
  })
}

function decodeFrame(bytes: Buffer, log: number, salt: number): ChunkFrame {
  const frame = decodeChunkFrame(bytes, salt)
  if (frame.log !== log) throw new RangeError('a chunk is one of another log')
  return frame
}

/** What stands in front of the data of a chunk, of whatever log. Throws `RangeError` when it is something else, or not whole. */
export function decodeChunkFrame(bytes: Buffer, salt: number): ChunkFrame {
  const payload = bytes.length < FRAME_HEADER_BYTES ? undefined : framePayload(bytes, 0, salt)
  if (payload === undefined) throw new RangeError('a chunk is not whole')
  const reader = new ByteReader(payload)
  const log = reader.varint()
  const crc = reader.u32()
  const blocks = readList(reader, () => ({ ...readBlock(reader), dataBytes: reader.varint() }))
  return { log, crc, blocks }
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

/** The chunks of a run that begins at `offset`. Throws `RangeError` when it is something else, or not whole. */
export function decodeIndex(bytes: Buffer, offset: number, salt: number): ChunkFacts[] {
  const payload = framePayload(bytes, 0, salt)
  if (payload === undefined) throw new RangeError('the index of a run is not whole')
  const reader = new ByteReader(payload)
  let next = offset
  return readList(reader, () => {
    const start = next
    next = reader.varintBehind(start)
    const firstSeqNum = reader.varint()
    return {
      offset: start,
      bytes: next - start,
      firstSeqNum,
      endSeqNum: reader.varintBehind(firstSeqNum),
      lastTimestamp: reader.varint(),
      meteredBytes: reader.varint(),
      minExpiry: reader.optional(),
    }
  })
}
