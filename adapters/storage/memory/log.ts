import { extendedExpiry, isExpired } from '../../../src/core/retention.ts'
import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import {
  type BlockPage,
  cutRecords,
  pagesOf,
  wantedPages,
  wantsPart,
} from '../../../src/storage/block-pages.ts'
import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** The bytes that are searched for a record. */
const PAGE_BYTES = 4096
const PIECE_BYTES_MAX = 16_384
/** The size up to which the waste of a piece is not worth a copy. */
const SMALL_PIECE_BYTES = 4_096

/** One log: its head and its blocks as they were appended. Merging blocks would gain nothing in memory. */
export class MemoryLog {
  readonly id: string
  /**
   * The times at which its next block expires, and its first block was trimmed. Set by {@link LogDeadlines}
   * only.
   */
  expiryDue: number | undefined
  trimDue: number | undefined
  /** The stored head. Never handed out. */
  current: Head
  /** Metered bytes of the blocks that are not freed. Set by this class only. */
  meteredBytes = 0
  #blocks = new OrderedList(bySeqNum)
  /** Blocks by expiry, if that is not the order of the log: a retention policy was shortened. */
  #expiring: OrderedList<StoredBlock> | undefined
  /** The time at which the last appended block expires; `Infinity` for never. */
  #lastExpiry = 0
  /** Memory that small blocks share, because a buffer of its own costs more than the rest of an append. */
  #piece: ArrayBuffer | undefined
  #pieceUsed = 0

  constructor(id: string, head: Head) {
    this.id = id
    this.current = head
  }

  /** Returns memory for a block. A piece is no larger than what the log holds. */
  allocate(bytes: number): Uint8Array {
    if (this.#piece === undefined || this.#pieceUsed + bytes > this.#piece.byteLength) {
      const pieceBytes = Math.min(this.meteredBytes, PIECE_BYTES_MAX)
      // Longer blocks would waste the end of a piece.
      if (pieceBytes < 4 * bytes) return new Uint8Array(bytes)
      this.#piece = new ArrayBuffer(pieceBytes)
      this.#pieceUsed = 0
    }
    this.#pieceUsed += bytes
    return new Uint8Array(this.#piece, this.#pieceUsed - bytes, bytes)
  }

  /** Returns whether blocks may have to be freed at another time than before. */
  append(block: StoredBlock, head: Head): boolean {
    const { data } = block
    const expiry = block.expiresAt ?? Number.POSITIVE_INFINITY
    if (expiry < this.#lastExpiry) this.#expiring ??= this.#byExpiry()
    this.#lastExpiry = expiry
    // Asking for the buffer of a short array would create one.
    const isTight =
      data.length > UNBUFFERED_BYTES_MAX &&
      (data.length === data.buffer.byteLength || data.buffer === this.#piece)
    const stored = isTight ? block : copyBlock(block)
    const isFirst = this.#blocks.add(stored)
    this.meteredBytes += stored.meteredBytes
    const expiresFirst =
      this.#expiring === undefined ? isFirst : stored.expiresAt !== null && this.#expiring.add(stored)
    this.current = head
    return expiresFirst || head.trims.length > 0
  }

  read(range: ReadRange): StoredBlock[] {
    const { from } = range
    const reached = (block: StoredBlock) =>
      'seqNum' in from ? block.endSeqNum > from.seqNum : block.lastTimestamp >= from.timestamp
    return takeBlocks(this.#blocks.from(reached), range)
  }

  /** The time at which the next block expires. */
  get expiresAt(): number | undefined {
    return this.#expiresNext?.expiresAt ?? undefined
  }

  /** The time at which the first block was trimmed; undefined if it was not. */
  get trimmedAt(): number | undefined {
    const first = this.#blocks.first()
    return first && this.current.trims.find(({ point }) => first.endSeqNum <= point)?.at
  }

  /** Frees the block that expires next, or stores its extended expiry. Returns whether it was freed. */
  freeExpired(now: number): boolean {
    const block = this.#expiresNext!
    const expiresAt = extendedExpiry(block, this.current.extensions)
    if (isExpired(expiresAt, now)) {
      this.#free(block)
      return true
    }
    // It may expire after later blocks now.
    this.#expiring ??= this.#byExpiry()
    const extended = { ...block, expiresAt }
    this.#blocks.delete(block)
    this.#blocks.add(extended)
    this.#expiring.delete(block)
    if (expiresAt !== null) this.#expiring.add(extended)
    return false
  }

  /** Frees the first block. */
  freeFirst(): void {
    this.#free(this.#blocks.first()!)
  }

  /** The next block, if it expires at all. */
  get #expiresNext(): StoredBlock | undefined {
    return (this.#expiring ?? this.#blocks).first()
  }

  #byExpiry(): OrderedList<StoredBlock> {
    const list = new OrderedList<StoredBlock>(byExpiry)
    for (const block of this.#blocks.from(() => true)) if (block.expiresAt !== null) list.add(block)
    return list
  }

  #free(block: StoredBlock): void {
    this.#blocks.delete(block)
    this.meteredBytes -= block.meteredBytes
    if (block.expiresAt !== null) this.#expiring?.delete(block)
    const pieceBytes = this.#piece?.byteLength ?? 0
    if (pieceBytes > SMALL_PIECE_BYTES && this.meteredBytes < SMALL_PIECE_BYTES) this.#copyBlocks()
  }

  /** Gives each block memory of its own. */
  #copyBlocks(): void {
    const before = this.#blocks
    this.#blocks = new OrderedList(bySeqNum)
    for (const block of before.from(() => true)) this.#blocks.add(copyBlock(block))
    this.#expiring &&= this.#byExpiry()
    this.#piece = undefined
  }
}

/** Returns the blocks of a read, of those from the first one that it reaches. */
export function takeBlocks(blocks: Iterable<StoredBlock>, range: ReadRange): StoredBlock[] {
  const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
  if ('seqNum' in from && from.seqNum >= endSeqNum) return []
  const found: StoredBlock[] = []
  let bytes = 0
  let records = 0
  for (const block of blocks) {
    if (block.firstSeqNum >= endSeqNum) break
    const isCut = found.length === 0 && block.data.length > PAGE_BYTES
    const wanted = (isCut && partOf(block, range)) || block
    found.push(wanted)
    bytes += wanted.meteredBytes
    records += wanted.endSeqNum - wanted.firstSeqNum
    if (bytes >= bytesMax || records >= recordsMax) break
  }
  return found
}

/** The wanted part of the first block, which has several pages; undefined if the block is read whole. */
function partOf(block: StoredBlock, range: ReadRange): StoredBlock | undefined {
  if (!wantsPart(block, range)) return undefined
  const pages = wantedPages(knownPages(block), range)
  const [first, last] = [pages[0], pages.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const data = block.data.subarray(first.offset, last.offset + last.bytes)
  return cutRecords(data, first.firstSeqNum, block.expiresAt, range)
}

/** The pages of blocks that were read in part: finding them visits every record. */
const PAGES = new WeakMap<StoredBlock, readonly BlockPage[]>()

function knownPages(block: StoredBlock): readonly BlockPage[] {
  const pages = PAGES.get(block) ?? pagesOf(block, PAGE_BYTES)
  PAGES.set(block, pages)
  return pages
}

function bySeqNum(a: StoredBlock, b: StoredBlock): number {
  return a.firstSeqNum - b.firstSeqNum
}

function byExpiry(a: StoredBlock, b: StoredBlock): number {
  return a.expiresAt! - b.expiresAt! || a.firstSeqNum - b.firstSeqNum
}

/** Copies a block. Also keeps a small block from retaining the large buffer that it is a view of. */
function copyBlock(block: StoredBlock): StoredBlock {
  return {
    ...block,
    // Not `slice`, which returns a view for a Node `Buffer`.
    data: new Uint8Array(block.data),
  }
}
