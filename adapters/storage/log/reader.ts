import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { BlockCollector } from '../../../src/storage/block-collector.ts'
import { mergedBlock } from '../../../src/storage/block-sizes.ts'
import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { cutRecords, wantsPart } from '../../../src/storage/cut-block.ts'
import { lowerBound, RecentMap } from '../../../src/storage/ordered-list.ts'
import { type Medium, MissingFile } from '../media/medium.ts'
import { ByteReader } from './bytes.ts'
import { isBlockChange, readChange } from './changes.ts'
import { decodeOrThrowCorrupt, fileName, readFrame, readUncheckedFrame } from './format.ts'
import type { JournalFile } from './journal.ts'
import { type ChunkBlock, type ChunkPlace, readChunks, readIndex } from './segment.ts'
import type { JournalBlock, Log, Run, State } from './state.ts'

/** Bytes per read, unless one block is longer. */
const WINDOW_BYTES = 1_048_576
/**
 * What lies between two blocks of a journal is read along up to this length, which is cheaper than a second
 * read.
 */
const GAP_BYTES_MAX = 16_384
/** Smaller blocks are not worth searching for a record. */
const CUT_BYTES_MIN = 4_096
/** Blocks of a journal that are shorter on average are copied next to each other. */
const COPIED_BYTES_MAX = 4_096
/** The indexes of so many runs stay in memory. */
const INDEXES_MAX = 16
/** How often a read begins again because a roll removed its files. */
const ATTEMPTS_MAX = 10

/** The journals, to find the salt of one. */
interface Journals {
  readonly files: readonly JournalFile[]
}

/** Reads the blocks of logs. */
export class LogReader {
  readonly #medium: Medium
  readonly #state: State
  readonly #journals: Journals
  readonly #indexes = new RecentMap<string, readonly ChunkPlace[]>(INDEXES_MAX)

  constructor(medium: Medium, state: State, journals: Journals) {
    this.#medium = medium
    this.#state = state
    this.#journals = journals
  }

  async read(id: string, range: ReadRange): Promise<StoredBlock[]> {
    for (let attempt = 1; ; attempt++) {
      const log = this.#state.logs.get(id)
      if (log === undefined) return []
      const { runs } = log
      try {
        return await this.#read(id, log, range)
      } catch (error) {
        // A roll may have moved the blocks, and removed the files in which they were.
        const isMoved = error instanceof MissingFile && this.#state.logs.get(id)?.runs !== runs
        if (!isMoved || attempt >= ATTEMPTS_MAX) throw error
      }
    }
  }

  async #read(id: string, log: Log, range: ReadRange): Promise<StoredBlock[]> {
    const selection = new Selection(range, log.freedBelow)
    // As they are now: what is freed or added meanwhile is not this read's.
    const blocks = selection.wantedOf(log.blocks)
    for (const run of log.runs.slice(lowerBound(log.runs, (run) => selection.isReached(run)))) {
      if (selection.isDone || run.firstSeqNum >= range.endSeqNum) break
      const chunks = await this.#indexOf(id, run)
      for (let next = selection.firstOf(chunks); next < chunks.length && !selection.isDone; ) {
        const window = windowOfChunks(chunks, next, selection)
        const found = await readChunks(this.#medium, id, run.segment, window)
        for (const block of found) selection.add(block)
        next += window.length
      }
    }
    for (let next = 0; next < blocks.length && !selection.isDone; ) {
      const window = windowOfBlocks(blocks, next, selection)
      for (const block of await this.#readJournal(id, window)) selection.add(block)
      next += window.length
    }
    return joined(selection.blocks)
  }

  async #readJournal(id: string, window: readonly JournalBlock[]): Promise<readonly ChunkBlock[]> {
    const { journal, offset } = window[0]!
    const last = window.at(-1)!
    const name = fileName('journal', journal)
    const file = this.#journals.files.find(({ number }) => number === journal)
    if (file === undefined) throw new MissingFile(name)
    const bytes = await this.#medium.read(name, offset, last.offset + last.bytes - offset)
    const found = window.map((block) =>
      decodeOrThrowCorrupt(name, block.offset, () =>
        decodeJournalBlock(bytes, block.offset - offset, file.salt, id, block),
      ),
    )
    return window.length === 1 ? found : isolated(bytes, found)
  }

  /** Numbers of segments are not used again, so an index stays what it is. */
  async #indexOf(id: string, run: Run): Promise<readonly ChunkPlace[]> {
    if (run.indexBytes === 0) return readIndex(this.#medium, id, run)
    const key = `${run.segment} ${run.offset}`
    const index = this.#indexes.get(key) ?? (await readIndex(this.#medium, id, run))
    this.#indexes.set(key, index)
    return index
  }
}

/**
 * Erases what is between the data of blocks, which are views of `bytes`: callers may reach it through
 * `ArrayBufferView.buffer`, and it may be of other logs. Copies short blocks, so that they can be joined.
 */
function isolated(bytes: Buffer, blocks: readonly ChunkBlock[]): readonly ChunkBlock[] {
  const length = blocks.reduce((sum, { data }) => sum + data.length, 0)
  if (length < blocks.length * COPIED_BYTES_MAX || length < bytes.length / 2) return gathered(blocks, length)
  let end = 0
  for (const { data } of blocks) {
    const start = data.byteOffset - bytes.byteOffset
    bytes.fill(0, end, start)
    end = start + data.length
  }
  return blocks
}

function gathered(blocks: readonly ChunkBlock[], length: number): readonly ChunkBlock[] {
  const all = new Uint8Array(length)
  let offset = 0
  return blocks.map((block) => {
    const start = offset
    all.set(block.data, start)
    offset += block.data.length
    return { ...block, data: all.subarray(start, offset) }
  })
}

/**
 * Decodes the frame of a block. Throws `RangeError` if it is damaged, or of another block. A copy of the data
 * takes their checksum along, so they need not be checked.
 */
export function decodeJournalBlock(
  bytes: Buffer,
  offset: number,
  salt: number,
  log: string,
  block: JournalBlock,
  isCopied = false,
): ChunkBlock {
  const { payload, data, dataCrc } = (isCopied ? readUncheckedFrame : readFrame)(bytes, offset, salt)
  const change = readChange(new ByteReader(payload))
  if (!isBlockChange(change) || change.log !== log || change.block.firstSeqNum !== block.firstSeqNum) {
    throw new RangeError('the frame is that of another block')
  }
  return {
    ...change.block,
    data: new Uint8Array(data.buffer, data.byteOffset, data.length),
    crc: dataCrc,
    isContinued: block.isContinued,
  }
}

/** Selects what a read wants. Blocks are added in the order of the log. */
class Selection {
  readonly #range: ReadRange
  readonly #freedBelow: number
  readonly #collector: BlockCollector<StoredBlock>
  /** Blocks of an append that a read without parts of appends has not seen completely. */
  #parts: StoredBlock[] = []

  constructor(range: ReadRange, freedBelow: number) {
    this.#range = range
    this.#freedBelow = freedBelow
    this.#collector = new BlockCollector(range)
  }

  get blocks(): readonly StoredBlock[] {
    return this.#collector.blocks
  }

  get isDone(): boolean {
    return this.#collector.isDone
  }

  /** Whether the read wants nothing behind blocks of so many bytes that end like this one. */
  isFilledBy({ endSeqNum }: { readonly endSeqNum: number }, bytes: number): boolean {
    const { from, endSeqNum: end } = this.#range
    const { blocks, bytesLeft, recordsLeft } = this.#collector
    const next = blocks.at(-1)?.endSeqNum ?? ('seqNum' in from ? from.seqNum : undefined)
    // By timestamp, any of the first records may be the first one that is wanted.
    return bytes >= bytesLeft || endSeqNum >= end || next === undefined || endSeqNum - next >= recordsLeft
  }

  /** Whether the read begins at or before the end of these blocks. */
  isReached({ endSeqNum, lastTimestamp }: { endSeqNum: number; lastTimestamp: number }): boolean {
    const { from } = this.#range
    if (endSeqNum <= this.#freedBelow) return false
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }

  /** The index of the first chunk that is needed. */
  firstOf(chunks: readonly ChunkPlace[]): number {
    let first = lowerBound(chunks, (chunk) => this.isReached(chunk))
    while (this.#range.unsplit && first > 0 && first < chunks.length && chunks[first]!.isContinuation) first--
    return first
  }

  /** The blocks that the read may need. */
  wantedOf(blocks: readonly JournalBlock[]): readonly JournalBlock[] {
    const { unsplit, endSeqNum, bytesMax } = this.#range
    let first = lowerBound(blocks, (block) => this.isReached(block))
    while (unsplit && first > 0 && blocks[first - 1]!.isContinued) first--
    let end = first
    let isCounted = false
    let bytes = 0
    while (
      end < blocks.length &&
      blocks[end]!.firstSeqNum < endSeqNum &&
      (bytes < bytesMax || end === first)
    ) {
      // How much of the first one comes after the start is unknown.
      if (isCounted) bytes += blocks[end]!.meteredBytes
      isCounted = this.isReached(blocks[end]!)
      end++
    }
    while (unsplit && end > first && end < blocks.length && blocks[end - 1]!.isContinued) end++
    return blocks.slice(first, end)
  }

  add({ isContinued, crc: _, ...block }: ChunkBlock): void {
    if (block.endSeqNum <= this.#freedBelow) return
    if (this.#range.unsplit) {
      this.#parts.push(block)
      if (isContinued) return
      this.#collector.add(mergedBlock(this.#parts))
      this.#parts = []
      return
    }
    if (this.#collector.isDone || !this.isReached(block)) return
    const isFirst = this.#collector.blocks.length === 0 && block.data.length >= CUT_BYTES_MIN
    const isCut = isFirst && wantsPart(block, this.#range)
    const part = isCut && cutRecords(block.data, block.firstSeqNum, block.expiresAt, this.#range)
    this.#collector.add(part || block)
  }
}

/** Chunks that are read together, and about as much as the read wants. */
function windowOfChunks(
  chunks: readonly ChunkPlace[],
  start: number,
  selection: Selection,
): readonly ChunkPlace[] {
  let end = start
  let bytes = 0
  do {
    bytes += chunks[end]!.bytes
    end++
  } while (
    end < chunks.length &&
    !selection.isFilledBy(chunks[end - 1]!, bytes) &&
    bytes + chunks[end]!.bytes <= WINDOW_BYTES
  )
  return chunks.slice(start, end)
}

/** Blocks that are close together, and about as many as the read wants. */
function windowOfBlocks(
  blocks: readonly JournalBlock[],
  start: number,
  selection: Selection,
): readonly JournalBlock[] {
  const first = blocks[start]!
  let end = start + 1
  let bytes = first.meteredBytes
  for (; end < blocks.length && !selection.isFilledBy(blocks[end - 1]!, bytes); end++) {
    const [before, block] = [blocks[end - 1]!, blocks[end]!]
    const gap = block.offset - before.offset - before.bytes
    if (block.journal !== first.journal || gap > GAP_BYTES_MAX) break
    if (block.offset + block.bytes - first.offset > WINDOW_BYTES) break
    bytes += block.meteredBytes
  }
  return blocks.slice(start, end)
}

/** Joins blocks that follow each other in memory, as those of a chunk do. */
function joined(blocks: readonly StoredBlock[]): StoredBlock[] {
  const result: StoredBlock[] = []
  for (const block of blocks) {
    const before = result.at(-1)
    if (before === undefined || !canJoin(before, block)) {
      result.push(block)
      continue
    }
    const { buffer, byteOffset, length } = before.data
    result[result.length - 1] = {
      ...before,
      endSeqNum: block.endSeqNum,
      lastTimestamp: block.lastTimestamp,
      meteredBytes: before.meteredBytes + block.meteredBytes,
      data: new Uint8Array(buffer, byteOffset, length + block.data.length),
    }
  }
  return result
}

function canJoin(a: StoredBlock, b: StoredBlock): boolean {
  return (
    a.data.buffer === b.data.buffer &&
    a.data.byteOffset + a.data.length === b.data.byteOffset &&
    a.endSeqNum === b.firstSeqNum &&
    a.expiresAt === b.expiresAt &&
    b.endSeqNum - a.firstSeqNum <= BATCH_RECORDS_MAX &&
    a.meteredBytes + b.meteredBytes <= BATCH_METERED_BYTES_MAX
  )
}
