import { blockExpiresAt, isBlockExpired } from '../../../src/core/retention.ts'
import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import { BlockCollector } from '../../../src/storage/block-collector.ts'
import { splitBlock } from '../../../src/storage/block-sizes.ts'
import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { cutRecords, wantsPart } from '../../../src/storage/cut-block.ts'
import { lowerBound } from '../../../src/storage/ordered-list.ts'

/** The bytes that are searched for a record. */
const PIECE_BYTES = 4_096
/** A block may keep a buffer of up to this size that it shares with others. */
const SHARED_BYTES = 8_192

/** One log: its head and its blocks as they were appended. Merging blocks would gain nothing in memory. */
export class MemoryLog {
  readonly id: string
  /** The stored head. Never handed out. */
  head: Head
  /** Metered bytes of the blocks that are not freed. */
  meteredBytes = 0
  /** No block expires before this time. */
  nextExpiry = Number.POSITIVE_INFINITY
  readonly #blocks: StoredBlock[] = []

  constructor(id: string, head: Head) {
    this.id = id
    this.head = head
  }

  append(blocks: readonly StoredBlock[], head: Head): void {
    for (const block of blocks) {
      this.#blocks.push(inSmallBuffer(block))
      this.meteredBytes += block.meteredBytes
      if (block.expiresAt !== null) this.nextExpiry = Math.min(this.nextExpiry, block.expiresAt)
    }
    this.head = head
  }

  read(range: ReadRange): StoredBlock[] {
    const wanted = new BlockCollector<StoredBlock>(range)
    const first = lowerBound(this.#blocks, isReached(range))
    for (let index = first; index < this.#blocks.length && !wanted.isDone; index++) {
      const block = this.#blocks[index]!
      wanted.add(index === first ? cut(block, range) : block)
    }
    return wanted.blocks
  }

  /** The time at which the first block was trimmed; infinite if it was not. */
  get trimmedAt(): number {
    const { trims } = this.head
    const first = trims.length === 0 ? undefined : this.#blocks[0]
    return (first && trims.find(({ point }) => first.endSeqNum <= point)?.at) ?? Number.POSITIVE_INFINITY
  }

  /** Frees the blocks below a trim point, at most `blocksMax`. Returns how many. */
  freeTrimmed(point: number, blocksMax: number): number {
    const trimmed = lowerBound(this.#blocks, ({ endSeqNum }) => endSeqNum > point)
    const freed = this.#blocks.splice(0, Math.min(trimmed, blocksMax))
    for (const { meteredBytes } of freed) this.meteredBytes -= meteredBytes
    return freed.length
  }

  /**
   * Frees expired blocks, and stores the expiry of those that a longer retention keeps: at most `blocksMax`
   * of both. Returns how many.
   */
  freeExpired(now: number, blocksMax: number): number {
    const blocks = this.#blocks
    let changed = 0
    let kept = 0
    let nextExpiry = Number.POSITIVE_INFINITY
    let index = 0
    for (; index < blocks.length && changed < blocksMax; index++) {
      let block = blocks[index]!
      if (isBlockExpired(block.expiresAt, now)) {
        changed++
        const expiresAt = blockExpiresAt(block, this.head.extensions)
        if (isBlockExpired(expiresAt, now)) {
          this.meteredBytes -= block.meteredBytes
          continue
        }
        block = { ...block, expiresAt }
      }
      nextExpiry = Math.min(nextExpiry, block.expiresAt ?? Number.POSITIVE_INFINITY)
      blocks[kept++] = block
    }
    // Others may have expired too if the limit was reached.
    if (index === blocks.length) this.nextExpiry = nextExpiry
    blocks.splice(kept, index - kept)
    return changed
  }
}

/** The pieces of large blocks that were read in part: finding them visits every record. */
const PIECES = new WeakMap<StoredBlock, readonly StoredBlock[]>()

/** The records of a first block that a read wants; the whole block if it cannot be cut or need not be. */
function cut(block: StoredBlock, range: ReadRange): StoredBlock {
  if (block.data.length <= PIECE_BYTES || !wantsPart(block, range)) return block
  const pieces = PIECES.get(block) ?? splitBlock(block, PIECE_BYTES)
  PIECES.set(block, pieces)
  const first = pieces[lowerBound(pieces, isReached(range))]!
  const data = block.data.subarray(first.data.byteOffset - block.data.byteOffset)
  return cutRecords(data, first.firstSeqNum, block.expiresAt, range) ?? block
}

/** Whether a read from a position reaches a block. */
function isReached({ from }: ReadRange): (block: StoredBlock) => boolean {
  return 'seqNum' in from
    ? ({ endSeqNum }) => endSeqNum > from.seqNum
    : ({ lastTimestamp }) => lastTimestamp >= from.timestamp
}

/** Copies the data of a block that is a view of a large buffer, which it would keep in memory. */
function inSmallBuffer(block: StoredBlock): StoredBlock {
  const { data } = block
  // Asking for the buffer of a short array would create one.
  const isShort = data.length <= UNBUFFERED_BYTES_MAX
  if (!isShort && data.buffer.byteLength <= Math.max(data.length, SHARED_BYTES)) return block
  // Not `slice`, which returns a view for a Node `Buffer`.
  return { ...block, data: new Uint8Array(data) }
}
