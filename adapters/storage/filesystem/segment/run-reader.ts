import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { corrupt, decodeOrThrowCorrupt } from '../files/errors.ts'
import type { FileCache } from '../files/file-cache.ts'
import { fileName } from '../files/file-header.ts'
import { type File, readExactly } from '../files/files.ts'
import { isolateBlocks, payloadEnd } from '../files/frame.ts'
import { isPooled, ReadBuffers } from '../files/read-buffers.ts'
import { PARTIAL_FRAME_BYTES, type PartReader } from '../part-reader.ts'
import type { Run } from '../state/segment.ts'
import type { Selection } from '../state/selection.ts'
import { coversRange, type SeqRanges } from '../state/seq-ranges.ts'
import {
  type ChunkBlock,
  type ChunkFacts,
  decodeChunkBlocks,
  decodeIndex,
  decodeSegmentChunk,
  onlyBlockOf,
} from './chunk.ts'

/** Bytes per read, unless one chunk is longer. */
const WINDOW_BYTES = 2 * 1_048_576
/** Enough for the description of most chunks. */
const DESCRIPTION_BYTES = 4096
/** How many chunks of indexes stay in memory: those of about 4 GiB of records. */
const INDEXED_CHUNKS_MAX = 65_536

/** Reads runs of segments. */
export class RunReader {
  readonly #handles: FileCache
  readonly #parts: PartReader
  readonly #buffers = new ReadBuffers()
  /** Least recently used first. */
  readonly #indexes = new Map<Run, readonly ChunkFacts[]>()
  #indexedChunks = 0

  constructor(handles: FileCache, parts: PartReader) {
    this.#handles = handles
    this.#parts = parts
  }

  /**
   * Begins to read the run if it is a single chunk, as large appends are, so that it is read while the chunk
   * before it is decoded.
   */
  readAhead(run: Run | undefined): Promise<Buffer<ArrayBuffer>> | undefined {
    if (run === undefined || run.indexBytes > 0) return undefined
    const reading = this.#use(run, (file) => this.#read(file, run, run.offset, run.bytes))
    // Reported when the run is selected.
    reading.catch(() => {})
    return reading
  }

  /**
   * Adds the blocks of the run that the selection wants and that are not in the holes.
   *
   * @param ahead The result of `readAhead`.
   */
  select(
    log: number,
    run: Run,
    holes: SeqRanges,
    selection: Selection,
    ahead?: Promise<Buffer<ArrayBuffer>>,
  ): Promise<void> {
    return this.#use(run, async (file) => {
      const chunks = await this.#chunksOf(run, file)
      for (let next = selection.firstIndexIn(chunks); next < chunks.length; ) {
        if (selection.isFull || selection.isPastEnd(chunks[next]!)) return
        const part = await this.#readPart(file, log, run, chunks[next]!, selection)
        if (part !== undefined) {
          if (!coversRange(holes, rangeOf(part))) selection.add(part)
          next++
          continue
        }
        const window = windowOf(chunks, next, selection)
        const bytes = await (ahead ?? this.#readWindow(file, run, window))
        for (const block of this.#releasable(bytes, decodeChunks(bytes, log, run, window))) {
          if (selection.isFull || selection.isPastEnd(block)) return
          if (selection.reachesStart(block) && !coversRange(holes, rangeOf(block))) selection.add(block)
        }
        next += window.length
      }
    })
  }

  /** Yields the blocks that are not freed, with their data, a few at a time. */
  async *blocks(log: number, run: Run): AsyncGenerator<readonly StoredBlock[], void, undefined> {
    const { holes } = run
    const chunks = await this.#use(run, (file) => this.#chunksOf(run, file))
    for (let next = 0; next < chunks.length; ) {
      const window = windowOf(chunks, next)
      const bytes = await this.#use(run, (file) => this.#readWindow(file, run, window))
      const blocks = decodeChunks(bytes, log, run, window)
      yield blocks.filter((block) => !coversRange(holes, rangeOf(block)))
      next += window.length
    }
  }

  /** Keeps the files of runs, which a compaction may replace, until the returned function is called. */
  hold(runs: readonly Run[]): () => Promise<void> {
    return this.#handles.hold(new Set(runs.map(nameOf)))
  }

  chunks(run: Run): Promise<readonly ChunkFacts[]> {
    return this.#use(run, (file) => this.#chunksOf(run, file))
  }

  /**
   * The blocks of a chunk, freed ones included, without reading their data. Not for adopted journals, whose
   * runs describe their only block.
   */
  describe(log: number, run: Run, chunk: ChunkFacts): Promise<readonly ChunkBlock[]> {
    return this.#use(run, async (file) => {
      let bytes = await readBytes(file, run, chunk.offset, Math.min(DESCRIPTION_BYTES, chunk.bytes))
      const length = Math.min(payloadEnd(bytes, 0), chunk.bytes)
      if (length > bytes.length) bytes = await readBytes(file, run, chunk.offset, length)
      return decodeOrThrowCorrupt(nameOf(run), chunk.offset, () =>
        decodeChunkBlocks(bytes, log, run.home.salt),
      )
    })
  }

  async #readPart(
    file: File,
    log: number,
    run: Run,
    chunk: ChunkFacts,
    selection: Selection,
  ): Promise<StoredBlock | undefined> {
    const { offset, bytes } = chunk
    const range = bytes > PARTIAL_FRAME_BYTES ? selection.partOf(chunk) : undefined
    if (range === undefined) return undefined
    const address = { name: nameOf(run), salt: run.home.salt, offset, bytes }
    return this.#parts.read(file, address, (head) => onlyBlockOf(run.home, head, log), range)
  }

  #readWindow(file: File, run: Run, window: readonly ChunkFacts[]): Promise<Buffer<ArrayBuffer>> {
    const start = window[0]!.offset
    const last = window.at(-1)!
    return this.#read(file, run, start, last.offset + last.bytes - start)
  }

  #read(file: File, run: Run, offset: number, length: number): Promise<Buffer<ArrayBuffer>> {
    return readBytes(file, run, offset, length, (length) => this.#buffers.take(length))
  }

  /** Gives `bytes` back when all blocks, which are views of it or copies, are released. */
  #releasable(bytes: Buffer<ArrayBuffer>, blocks: readonly StoredBlock[]): readonly StoredBlock[] {
    // A batch of several blocks is a copy, and releases none.
    if (blocks.length > 2 || !isPooled(bytes)) return blocks
    let left = blocks.length
    const release = () => {
      if (--left === 0) this.#buffers.giveBack(bytes)
    }
    return blocks.map((block) => ({ ...block, release }))
  }

  #use<Result>(run: Run, work: (file: File) => Promise<Result>): Promise<Result> {
    return this.#handles.use(nameOf(run), work)
  }

  async #chunksOf(run: Run, file: File): Promise<readonly ChunkFacts[]> {
    if (run.indexBytes === 0) return [onlyChunkOf(run)]
    let chunks = this.#indexes.get(run)
    if (chunks === undefined) {
      const offset = run.offset + run.bytes - run.indexBytes
      const bytes = await readBytes(file, run, offset, run.indexBytes)
      chunks = decodeOrThrowCorrupt(nameOf(run), offset, () => indexUpTo(offset, bytes, run))
    }
    this.#keep(run, chunks)
    return chunks
  }

  #keep(run: Run, chunks: readonly ChunkFacts[]): void {
    if (!this.#indexes.delete(run)) this.#indexedChunks += chunks.length
    this.#indexes.set(run, chunks)
    for (const [other, { length }] of this.#indexes) {
      if (this.#indexedChunks <= INDEXED_CHUNKS_MAX) return
      this.#indexes.delete(other)
      this.#indexedChunks -= length
    }
  }
}

/** Throws unless the chunks fill the space between the start of the run and its index. */
function indexUpTo(end: number, bytes: Buffer, run: Run): readonly ChunkFacts[] {
  const chunks = decodeIndex(bytes, run.offset, run.home.salt)
  const last = chunks.at(-1)
  if (last === undefined || last.offset + last.bytes !== end) {
    throw new RangeError('the index of a run does not match its chunks')
  }
  return chunks
}

function onlyChunkOf(run: Run): ChunkFacts {
  const { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, minExpiry } = run
  return { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, minExpiry }
}

/** Consecutive chunks to read at once, no more than the selection needs. */
function windowOf(
  chunks: readonly ChunkFacts[],
  start: number,
  selection?: Selection,
): readonly ChunkFacts[] {
  let end = start
  let bytes = 0
  let meteredBytes = 0
  let records = 0
  while (end < chunks.length) {
    const chunk = chunks[end]!
    if (end > start && bytes + chunk.bytes > WINDOW_BYTES) break
    if (end > start && (selection?.wouldFill(meteredBytes, records) || selection?.isPastEnd(chunk))) break
    bytes += chunk.bytes
    meteredBytes += chunk.meteredBytes
    records += chunk.endSeqNum - chunk.firstSeqNum
    end++
  }
  return chunks.slice(start, end)
}

/** Decodes the chunks of a window, which `bytes` are. */
function decodeChunks(
  bytes: Buffer,
  log: number,
  run: Run,
  window: readonly ChunkFacts[],
): readonly StoredBlock[] {
  const start = window[0]!.offset
  const blocks = window.flatMap(({ offset, bytes: length }) => {
    const chunk = bytes.subarray(offset - start, offset - start + length)
    return decodeOrThrowCorrupt(nameOf(run), offset, () => decodeSegmentChunk(run.home, chunk, log))
  })
  return isolateBlocks(bytes, blocks)
}

async function readBytes(
  file: File,
  run: Run,
  offset: number,
  length: number,
  take?: (length: number) => Buffer<ArrayBuffer>,
): Promise<Buffer<ArrayBuffer>> {
  const name = nameOf(run)
  // Check an unusual length against the file before allocating memory for it.
  if (length > WINDOW_BYTES) {
    const size = await file.size()
    if (offset + length > size) throw corrupt(name, size, 'truncated')
  }
  return readExactly(file, name, offset, length, take?.(length))
}

function nameOf({ segment }: Run): string {
  return fileName('segment', segment)
}

function rangeOf({ firstSeqNum, endSeqNum }: { readonly firstSeqNum: number; readonly endSeqNum: number }) {
  return { from: firstSeqNum, to: endSeqNum }
}
