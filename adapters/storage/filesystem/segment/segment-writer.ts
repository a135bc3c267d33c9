import type { StoredBlock } from '../../../../src/storage/contract.ts'
import type { Files } from '../files/files.ts'
import { NewFile } from '../files/new-file.ts'
import { earliest, type RunFacts, type SegmentFacts } from '../state/segment.ts'
import { NO_RANGES } from '../state/seq-ranges.ts'
import { CHUNK_BYTES, type ChunkFacts, encodeChunkFrame, encodeIndex } from './chunk.ts'

/** Writes a segment: run after run, block after block. */
export class SegmentWriter {
  readonly #file: NewFile
  #log = 0
  #runOffset = 0
  #chunks: ChunkFacts[] = []
  #blocks: StoredBlock[] = []
  #blocksBytes = 0
  #blockCount = 0
  #maxExpiry: number | null = 0

  private constructor(file: NewFile) {
    this.#file = file
  }

  static async create(files: Files, number: number): Promise<SegmentWriter> {
    return new SegmentWriter(await NewFile.create(files, 'segment', number))
  }

  get facts(): SegmentFacts {
    return { number: this.#file.number, salt: this.#file.salt, bytes: this.#file.length, journal: 0 }
  }

  beginRun(log: number): void {
    this.#log = log
    this.#runOffset = this.#file.length
    this.#chunks = []
    this.#blockCount = 0
    this.#maxExpiry = 0
  }

  /** Adds a block whose data must not change before the run is ended. */
  async add(block: StoredBlock): Promise<void> {
    if (this.#blocksBytes > 0 && this.#blocksBytes + block.data.length > CHUNK_BYTES) {
      this.#endChunk()
      await this.#file.drain()
    }
    this.#blocks.push(block)
    this.#blocksBytes += block.data.length
    this.#blockCount++
    const { expiresAt } = block
    this.#maxExpiry =
      expiresAt === null || this.#maxExpiry === null ? null : Math.max(this.#maxExpiry, expiresAt)
  }

  /** Ends the run. Undefined if it has no block. */
  async endRun(): Promise<RunFacts | undefined> {
    this.#endChunk()
    const chunks = this.#chunks
    const first = chunks[0]
    const last = chunks.at(-1)
    if (first === undefined || last === undefined) return undefined
    const index = chunks.length > 1 ? encodeIndex(chunks, this.#file.salt) : undefined
    if (index !== undefined) this.#file.add(index)
    const bytes = this.#file.length - this.#runOffset
    await this.#file.drain()
    return {
      segment: this.#file.number,
      offset: this.#runOffset,
      bytes,
      indexBytes: index?.length ?? 0,
      firstSeqNum: first.firstSeqNum,
      endSeqNum: last.endSeqNum,
      lastTimestamp: last.lastTimestamp,
      blocks: this.#blockCount,
      meteredBytes: chunks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      liveBytes: bytes,
      minExpiry: earliest(chunks.map(({ minExpiry }) => minExpiry)),
      maxExpiry: this.#maxExpiry,
      holes: NO_RANGES,
    }
  }

  finish(): Promise<void> {
    return this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  #endChunk(): void {
    const blocks = this.#blocks
    const first = blocks[0]
    const last = blocks.at(-1)
    if (first === undefined || last === undefined) return
    const frame = encodeChunkFrame(this.#log, blocks, this.#file.salt)
    this.#chunks.push({
      offset: this.#file.length,
      bytes: frame.length + this.#blocksBytes,
      firstSeqNum: first.firstSeqNum,
      endSeqNum: last.endSeqNum,
      lastTimestamp: last.lastTimestamp,
      meteredBytes: blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      minExpiry: earliest(blocks.map(({ expiresAt }) => expiresAt)),
    })
    this.#file.add(frame)
    for (const { data } of blocks) this.#file.add(data)
    this.#blocks = []
    this.#blocksBytes = 0
  }
}
