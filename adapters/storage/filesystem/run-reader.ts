import type { StoredBlock } from '../../../src/storage/contract.ts'
import { type ChunkBlock, type ChunkFacts, chunkFrameBytes, decodeChunkBlocks, decodeIndex } from './chunk.ts'
import { corrupt } from './failures.ts'
import { fileName } from './file-header.ts'
import type { File } from './files.ts'
import type { Handles } from './handles.ts'
import type { Run } from './run.ts'
import { decodeSegmentChunk } from './segment-chunk.ts'
import type { Selection } from './selection.ts'
import { coversRange, type SeqRanges } from './seq-ranges.ts'

/** What is read at once, unless one chunk is longer. */
const WINDOW_BYTES = 2 * 1_048_576
/** Enough for the description of most chunks. */
const DESCRIPTION_BYTES = 4096
/** Indexes are kept in memory up to so many chunks: of about 4 GiB of records. */
const INDEXED_CHUNKS_MAX = 65_536

/** Reads runs of segments. */
export class RunReader {
  readonly #handles: Handles
  /** Least recently used first. */
  readonly #indexes = new Map<Run, readonly ChunkFacts[]>()
  #indexedChunks = 0

  constructor(handles: Handles) {
    this.#handles = handles
  }

  /** Adds what the selection wants of the run, without what is in the holes. */
  select(log: number, run: Run, holes: SeqRanges, selection: Selection): Promise<void> {
    return this.#use(run, async (file) => {
      const chunks = await this.#chunksOf(run, file)
      for (let next = selection.firstOf(chunks); next < chunks.length; ) {
        if (selection.isFull || selection.isBehind(chunks[next]!)) return
        const window = windowOf(chunks, next, selection)
        for (const block of await readChunks(file, log, run, window)) {
          if (selection.isFull || selection.isBehind(block)) return
          if (selection.begins(block) && !coversRange(holes, rangeOf(block))) selection.add(block)
        }
        next += window.length
      }
    })
  }

  /** The blocks that are not freed, with their data, a few at a time. */
  async *blocks(log: number, run: Run): AsyncGenerator<readonly StoredBlock[], void, undefined> {
    const { holes } = run
    const chunks = await this.#use(run, (file) => this.#chunksOf(run, file))
    for (let next = 0; next < chunks.length; ) {
      const window = windowOf(chunks, next)
      const blocks = await this.#use(run, (file) => readChunks(file, log, run, window))
      yield blocks.filter((block) => !coversRange(holes, rangeOf(block)))
      next += window.length
    }
  }

  /** Holds the files of runs, which may be merged meanwhile, until the returned function is called. */
  hold(runs: readonly Run[]): () => Promise<void> {
    return this.#handles.hold(new Set(runs.map(({ segment }) => fileName('segment', segment))))
  }

  chunks(run: Run): Promise<readonly ChunkFacts[]> {
    return this.#use(run, (file) => this.#chunksOf(run, file))
  }

  /** What the chunk holds, freed blocks included, without reading its data. Not for adopted journals, whose runs say it themselves. */
  describe(log: number, run: Run, chunk: ChunkFacts): Promise<readonly ChunkBlock[]> {
    return this.#use(run, async (file) => {
      let bytes = await readBytes(file, run, chunk.offset, Math.min(DESCRIPTION_BYTES, chunk.bytes))
      const length = Math.min(chunkFrameBytes(bytes), chunk.bytes)
      if (length > bytes.length) bytes = await readBytes(file, run, chunk.offset, length)
      return decoding(run, chunk.offset, () => decodeChunkBlocks(bytes, log, run.home.salt))
    })
  }

  #use<Result>(run: Run, work: (file: File) => Promise<Result>): Promise<Result> {
    return this.#handles.use(fileName('segment', run.segment), work)
  }

  async #chunksOf(run: Run, file: File): Promise<readonly ChunkFacts[]> {
    if (run.indexBytes === 0) return [onlyChunkOf(run)]
    let chunks = this.#indexes.get(run)
    if (chunks === undefined) {
      const offset = run.offset + run.bytes - run.indexBytes
      const bytes = await readBytes(file, run, offset, run.indexBytes)
      chunks = decoding(run, offset, () => indexUpTo(offset, bytes, run))
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

/** Chunks that do not lie between the run's offset and its index would be read from elsewhere. */
function indexUpTo(end: number, bytes: Buffer, run: Run): readonly ChunkFacts[] {
  const chunks = decodeIndex(bytes, run.offset, run.home.salt)
  const last = chunks.at(-1)
  if (last === undefined || last.offset + last.bytes !== end) {
    throw new RangeError('the index of a run is one of other chunks')
  }
  return chunks
}

function onlyChunkOf(run: Run): ChunkFacts {
  const { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, minExpiry } = run
  return { offset, bytes, firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, minExpiry }
}

/** Neighbouring chunks that are worth reading at once: no more than the selection needs. */
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
    if (end > start && (selection?.wouldFill(meteredBytes, records) || selection?.isBehind(chunk))) break
    bytes += chunk.bytes
    meteredBytes += chunk.meteredBytes
    records += chunk.endSeqNum - chunk.firstSeqNum
    end++
  }
  return chunks.slice(start, end)
}

async function readChunks(
  file: File,
  log: number,
  run: Run,
  window: readonly ChunkFacts[],
): Promise<StoredBlock[]> {
  const start = window[0]!.offset
  const last = window.at(-1)!
  const bytes = await readBytes(file, run, start, last.offset + last.bytes - start)
  return window.flatMap(({ offset, bytes: length }) => {
    const chunk = bytes.subarray(offset - start, offset - start + length)
    return decoding(run, offset, () => decodeSegmentChunk(run.home, chunk, log))
  })
}

async function readBytes(file: File, run: Run, offset: number, length: number): Promise<Buffer> {
  // A length that is no ordinary one is not believed before it takes memory.
  if (length > WINDOW_BYTES) {
    const size = await file.size()
    if (offset + length > size) throw corrupt(fileName('segment', run.segment), size, 'it is cut short')
  }
  const bytes = Buffer.allocUnsafeSlow(length)
  const filled = await file.read(bytes, offset)
  if (filled < length) throw corrupt(fileName('segment', run.segment), offset + filled, 'it is cut short')
  return bytes
}

function decoding<Result>(run: Run, offset: number, decode: () => Result): Result {
  try {
    return decode()
  } catch (error) {
    throw corrupt(fileName('segment', run.segment), offset, (error as Error).message)
  }
}

function rangeOf({ firstSeqNum, endSeqNum }: { readonly firstSeqNum: number; readonly endSeqNum: number }) {
  return { from: firstSeqNum, to: endSeqNum }
}
