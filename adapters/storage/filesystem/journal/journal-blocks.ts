import { EMPTY_BYTES } from '../../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'
import { ByteReader } from '../files/bytes.ts'
import { decodeOrThrowCorrupt } from '../files/errors.ts'
import type { FileCache } from '../files/file-cache.ts'
import { fileName } from '../files/file-header.ts'
import { type File, readExactly } from '../files/files.ts'
import { type FrameHead, isolateBlocks, readFrame } from '../files/frame.ts'
import { PARTIAL_FRAME_BYTES, type PartReader } from '../part-reader.ts'
import { type AppendedBlock, readAppend } from '../state/change.ts'
import type { JournalBlock } from '../state/log.ts'
import type { Selection } from '../state/selection.ts'
import type { EndedJournal } from './journals.ts'

/** Bytes per read, unless one block is longer. */
const WINDOW_BYTES = 1_048_576
/**
 * Data of other logs between two blocks is read along up to this length, which is cheaper than a second read.
 */
const GAP_BYTES_MAX = 16 * 1024

/** Reads blocks from journals. */
export class JournalBlockReader {
  readonly #handles: FileCache
  readonly #parts: PartReader

  constructor(handles: FileCache, parts: PartReader) {
    this.#handles = handles
    this.#parts = parts
  }

  /** Adds those of the first `length` blocks that the selection wants. */
  async select(blocks: readonly JournalBlock[], length: number, selection: Selection): Promise<void> {
    for (let next = selection.firstIndexIn(blocks, length); next < length; ) {
      if (selection.isFull || selection.isPastEnd(blocks[next]!)) return
      const part = await this.#readPart(blocks[next]!, selection)
      if (part !== undefined) {
        selection.add(part)
        next++
        continue
      }
      const window = windowOf(blocks, next, length, selection)
      for (const block of await this.#read(window)) selection.add(block)
      next += window.length
    }
  }

  async #readPart(place: JournalBlock, selection: Selection): Promise<StoredBlock | undefined> {
    const { journal, offset, bytes } = place
    const range = bytes > PARTIAL_FRAME_BYTES ? selection.partOf(place) : undefined
    if (range === undefined) return undefined
    const address = { name: fileName('journal', journal.number), salt: journal.salt, offset, bytes }
    const factsOf = (head: FrameHead) => appendOf(head, EMPTY_BYTES).block
    return this.#handles.use(address.name, (file) => this.#parts.read(file, address, factsOf, range))
  }

  async #read(window: readonly JournalBlock[]): Promise<readonly StoredBlock[]> {
    const { journal, offset } = window[0]!
    const last = window.at(-1)!
    const name = fileName('journal', journal.number)
    const length = last.offset + last.bytes - offset
    const bytes = await this.#handles.use(name, (file) => readExactly(file, name, offset, length))
    const piece = { name, offset, bytes }
    return isolateBlocks(
      bytes,
      window.map((place) => decodeJournalBlock(piece, place)),
    )
  }
}

/** A part of a journal. */
interface Piece {
  /** Name of the journal's file. */
  readonly name: string
  readonly offset: number
  readonly bytes: Buffer
}

/** Decodes the block at `place`. Its data is a view. */
function decodeJournalBlock({ name, offset, bytes }: Piece, place: JournalBlock): StoredBlock {
  const start = place.offset - offset
  const frame = bytes.subarray(start, start + place.bytes)
  return decodeOrThrowCorrupt(name, place.offset, () => decodeAppendFrame(frame, place.journal.salt).block)
}

/** Blocks that are close together, and no more than the selection needs. */
function windowOf(
  blocks: readonly JournalBlock[],
  start: number,
  length: number,
  selection: Selection,
): readonly JournalBlock[] {
  const first = blocks[start]!
  let end = start + 1
  let { meteredBytes } = first
  for (; end < length; end++) {
    const before = blocks[end - 1]!
    const block = blocks[end]!
    const gap = block.offset - before.offset - before.bytes
    if (block.journal !== first.journal || gap > GAP_BYTES_MAX) break
    if (block.offset + block.bytes - first.offset > WINDOW_BYTES) break
    if (selection.wouldFill(meteredBytes, before.endSeqNum - first.firstSeqNum)) break
    if (selection.isPastEnd(block)) break
    meteredBytes += block.meteredBytes
  }
  return blocks.slice(start, end)
}

/** The data are a view. Throws `RangeError` if the frame is damaged or does not append a block. */
export function decodeAppendFrame(frame: Buffer, salt: number): AppendedBlock {
  const whole = readFrame(frame, 0, salt)
  return appendOf(whole, whole.data)
}

/** The append of a frame with these data. Throws `RangeError` if the frame is damaged or is no append. */
export function appendOf({ fields }: FrameHead, data: Uint8Array): AppendedBlock {
  const append = readAppend(new ByteReader(fields), data)
  if (append === undefined) throw new RangeError('a frame does not append a block')
  return append
}

/**
 * The parts of ended journals that are copied, held in memory: they are needed log by log, and a read for
 * each block would be too many.
 */
export class JournalContents {
  readonly #handles: FileCache
  /** Ascending pieces by the number of their journal. */
  readonly #pieces = new Map<number, readonly Piece[]>()

  constructor(handles: FileCache) {
    this.#handles = handles
  }

  async readWhole({ number, end }: EndedJournal): Promise<void> {
    this.#pieces.set(number, [await this.#read(number, 0, end)])
  }

  /** Reads these blocks of the journal and little else. */
  async readBlocks({ number }: EndedJournal, blocks: readonly JournalBlock[]): Promise<void> {
    const pieces: Piece[] = []
    const ascending = blocks.toSorted((a, b) => a.offset - b.offset)
    for (let next = 0; next < ascending.length; ) {
      const { offset } = ascending[next]!
      let end = offset
      for (; next < ascending.length && ascending[next]!.offset - end <= GAP_BYTES_MAX; next++) {
        end = ascending[next]!.offset + ascending[next]!.bytes
      }
      pieces.push(await this.#read(number, offset, end))
    }
    this.#pieces.set(number, pieces)
  }

  /** A block that was read before. Its data is a view. */
  block(place: JournalBlock): StoredBlock {
    const pieces = this.#pieces.get(place.journal.number)!
    const index = lowerBound(pieces, ({ offset, bytes }) => offset + bytes.length > place.offset)
    return decodeJournalBlock(pieces[index]!, place)
  }

  async #read(journal: number, offset: number, end: number): Promise<Piece> {
    const name = fileName('journal', journal)
    const read = (file: File) => readExactly(file, name, offset, end - offset)
    return { name, offset, bytes: await this.#handles.use(name, read) }
  }
}
