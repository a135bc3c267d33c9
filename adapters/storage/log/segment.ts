import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Medium, NewFile, ReadableMedium } from '../media/medium.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { readList, readSummary, writeSummary } from './changes.ts'
import {
  beginFrame,
  corrupt,
  decodeOrThrowCorrupt,
  encodeHeader,
  endFrame,
  fileName,
  HEADER_BYTES,
  readFrame,
} from './format.ts'
import { latestExpiry, type Run } from './state.ts'

/**
 * Appends are split into blocks of at most so much data, and blocks are put together in chunks of at most so
 * much: a read of one record reads and checks one of them.
 */
export const CHUNK_DATA_BYTES = 32_768

/** A block of a chunk. Its data are a view. */
export interface ChunkBlock extends BlockSummary {
  readonly data: Uint8Array
  /** The checksum of the data, if it is known. */
  readonly crc?: number | undefined
  /** Whether the next block is of the same append. */
  readonly isContinued: boolean
}

/** The place of a chunk, as the index of its run tells it. */
export interface ChunkPlace {
  readonly offset: number
  readonly bytes: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  /** Whether its first block continues an append. */
  readonly isContinuation: boolean
}

/** Writes a segment: the runs of logs, in the order of their ids. */
export class SegmentWriter {
  readonly number: number
  readonly #file: NewFile
  readonly #writer = new ByteWriter()
  #log = ''
  #pending: ChunkBlock[] = []
  #pendingBytes = 0
  #chunks: ChunkPlace[] = []
  #run: Omit<Run, 'indexBytes'> | undefined
  #isContinuation = false
  /** The length of the file. */
  bytes = HEADER_BYTES
  runs = 0
  runBytes = 0

  private constructor(number: number, file: NewFile) {
    this.number = number
    this.#file = file
  }

  static async create(medium: Medium, number: number): Promise<SegmentWriter> {
    const file = await medium.create(fileName('segment', number))
    await file.write(encodeHeader({ kind: 'segment', number, firstGroup: 0, salt: 0 }))
    return new SegmentWriter(number, file)
  }

  /** Begins the run of a log. */
  begin(log: string): void {
    this.#log = log
    this.#run = undefined
    this.#chunks = []
    this.#isContinuation = false
  }

  async add(block: ChunkBlock): Promise<void> {
    const { firstSeqNum, endSeqNum, lastTimestamp, expiresAt } = block
    const run = this.#run ?? {
      segment: this.number,
      offset: this.bytes,
      bytes: 0,
      firstSeqNum,
      blocks: 0,
      meteredBytes: 0,
      firstExpiry: expiresAt,
      lastExpiry: undefined,
    }
    this.#run = {
      ...run,
      endSeqNum,
      lastTimestamp,
      blocks: run.blocks + 1,
      meteredBytes: run.meteredBytes + block.meteredBytes,
      lastExpiry: latestExpiry(run.lastExpiry, expiresAt),
    }
    if (this.#pending.length > 0 && this.#pendingBytes + block.data.length > CHUNK_DATA_BYTES) {
      await this.#endChunk()
    }
    this.#pending.push(block)
    this.#pendingBytes += block.data.length
  }

  /** Ends the run. Undefined if it has no blocks. */
  async end(): Promise<Run | undefined> {
    if (this.#run === undefined) return undefined
    await this.#endChunk()
    const bytes = this.bytes - this.#run.offset
    const indexBytes = this.#chunks.length > 1 ? await this.#writeIndex() : 0
    this.runs++
    this.runBytes += bytes
    return { ...this.#run, bytes, indexBytes }
  }

  finish(): Promise<void> {
    return this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  async #endChunk(): Promise<void> {
    const writer = this.#writer
    const blocks = this.#pending
    const last = blocks.at(-1)!
    const start = beginFrame(writer)
    writer.string(this.#log)
    writer.varint(blocks.length)
    for (const block of blocks) {
      writeSummary(writer, block)
      writer.varint(2 * block.data.length + (block.isContinued ? 1 : 0))
    }
    for (const { data } of blocks) writer.raw(data)
    // So what a roll copies has the checksum with which it was written, and is not summed again.
    const crc = blocks.length === 1 ? blocks[0]!.crc : undefined
    endFrame(writer, start, this.#pendingBytes, 0, crc)
    const { endSeqNum, lastTimestamp } = last
    const isContinuation = this.#isContinuation
    const bytes = writer.length - start
    this.#chunks.push({ offset: this.bytes, bytes, endSeqNum, lastTimestamp, isContinuation })
    this.#isContinuation = last.isContinued
    this.#pending = []
    this.#pendingBytes = 0
    await this.#written(bytes)
  }

  async #writeIndex(): Promise<number> {
    const writer = this.#writer
    const start = beginFrame(writer)
    writer.string(this.#log)
    writer.varint(this.#chunks.length)
    for (const { bytes, endSeqNum, lastTimestamp, isContinuation } of this.#chunks) {
      writer.varint(2 * bytes + (isContinuation ? 1 : 0))
      writer.varint(endSeqNum)
      writer.varint(lastTimestamp)
    }
    endFrame(writer, start, 0, 0)
    const bytes = writer.length - start
    await this.#written(bytes)
    return bytes
  }

  async #written(bytes: number): Promise<void> {
    this.bytes += bytes
    await this.#file.write(this.#writer.bytes)
    this.#writer.truncate(0)
  }
}

/** Reads the places of the chunks of a run. */
export async function readIndex(
  medium: ReadableMedium,
  log: string,
  run: Run,
): Promise<readonly ChunkPlace[]> {
  const { segment, offset, bytes, indexBytes, endSeqNum, lastTimestamp } = run
  if (indexBytes === 0) return [{ offset, bytes, endSeqNum, lastTimestamp, isContinuation: false }]
  const name = fileName('segment', segment)
  const at = offset + bytes
  const found = await medium.read(name, at, indexBytes)
  return decodeOrThrowCorrupt(name, at, () => {
    const chunks = decodeIndex(found, log, offset)
    const last = chunks.at(-1)
    if (last?.endSeqNum !== endSeqNum || last.offset + last.bytes !== at) {
      throw new RangeError('the index is not that of the run')
    }
    return chunks
  })
}

/** Throws `RangeError` if the index is damaged. Its chunks begin at `offset`. */
function decodeIndex(bytes: Buffer, log: string, offset: number): readonly ChunkPlace[] {
  const reader = new ByteReader(readFrame(bytes, 0, 0).payload)
  if (reader.string() !== log) throw new RangeError('the index is that of another log')
  let next = offset
  return readList(reader, () => {
    const sizeAndFlag = reader.varint()
    const size = Math.floor(sizeAndFlag / 2)
    const chunk = {
      offset: next,
      bytes: size,
      endSeqNum: reader.varint(),
      lastTimestamp: reader.varint(),
      isContinuation: sizeAndFlag % 2 === 1,
    }
    next += size
    return chunk
  })
}

/** Reads the blocks of consecutive chunks of a run. */
export async function readChunks(
  medium: ReadableMedium,
  log: string,
  segment: number,
  chunks: readonly ChunkPlace[],
): Promise<ChunkBlock[]> {
  const name = fileName('segment', segment)
  const { offset } = chunks[0]!
  const last = chunks.at(-1)!
  const bytes = await medium.read(name, offset, last.offset + last.bytes - offset)
  return chunks.flatMap((chunk) => {
    const decode = () => {
      const { log: found, blocks, end } = decodeChunk(bytes, chunk.offset - offset)
      if (found !== log) throw new RangeError('the chunk is that of another log')
      const isIndexed =
        blocks.at(-1)?.endSeqNum === chunk.endSeqNum && end === chunk.offset + chunk.bytes - offset
      if (!isIndexed) throw new RangeError('the chunk is not the one in the index')
      return blocks
    }
    return decodeOrThrowCorrupt(name, chunk.offset, decode)
  })
}

/** A chunk. The data of its blocks are views. */
export interface Chunk {
  readonly log: string
  readonly blocks: ChunkBlock[]
  /** One after its last byte. */
  readonly end: number
}

/** Decodes the chunk at `offset`. Throws `RangeError` if it is incomplete or damaged. */
export function decodeChunk(bytes: Buffer, offset: number): Chunk {
  const { payload, data, end } = readFrame(bytes, offset, 0)
  const reader = new ByteReader(payload)
  const log = reader.string()
  let start = 0
  const blocks = readList(reader, () => {
    const summary = readSummary(reader)
    const lengthAndFlag = reader.varint()
    const length = Math.floor(lengthAndFlag / 2)
    if (start + length > data.length) throw new RangeError('a block overruns its chunk')
    const block = {
      ...summary,
      // Not a `Buffer`, which no other storage returns.
      data: new Uint8Array(data.buffer, data.byteOffset + start, length),
      isContinued: lengthAndFlag % 2 === 1,
    }
    start += length
    return block
  })
  return { log, blocks, end }
}

/** Throws a `corrupt` failure unless a segment has its length. */
export function assertLength(number: number, expected: number, actual: number | undefined): void {
  const name = fileName('segment', number)
  if (actual === undefined) throw corrupt(name, 0, 'the file is missing')
  if (actual !== expected) throw corrupt(name, Math.min(actual, expected), `${expected} bytes are expected`)
}
