import {
  type AppendRequest,
  type Head,
  identityOf,
  isSameHead,
  type ReadRange,
  type StoredBlock,
} from '../../../src/storage/contract.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** One log: its head and its blocks. Blocks are kept as they were appended: merging them would gain nothing in memory. */
export class MemoryLog {
  readonly id: string
  #head: Head
  #meteredBytes = 0
  readonly #blocks = new OrderedList<StoredBlock>((a, b) => a.firstSeqNum - b.firstSeqNum)
  /** The blocks that expire, soonest first: not the order of the log once a retention policy was shortened. */
  readonly #expiring = new OrderedList<StoredBlock>(
    (a, b) => a.expiresAt! - b.expiresAt! || a.firstSeqNum - b.firstSeqNum,
  )

  constructor(id: string, head: Head) {
    this.id = id
    this.#head = head
  }

  get head(): Head {
    return copyHead(this.#head)
  }

  /** Of the blocks that are kept. */
  get meteredBytes(): number {
    return this.#meteredBytes
  }

  setEpoch(epoch: number): void {
    this.#head = { ...this.#head, epoch }
  }

  holds(expected: AppendRequest['expected']): boolean {
    return isSameHead(identityOf(this.#head), expected)
  }

  append(block: StoredBlock, head: Head): void {
    const stored = copyBlock(block)
    this.#blocks.add(stored)
    this.#meteredBytes += stored.meteredBytes
    if (stored.expiresAt !== null) this.#expiring.add(stored)
    this.#head = copyHead(head)
  }

  read({ from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY }: ReadRange): StoredBlock[] {
    if ('seqNum' in from && from.seqNum >= endSeqNum) return []
    const reached =
      'seqNum' in from
        ? (block: StoredBlock) => block.endSeqNum > from.seqNum
        : (block: StoredBlock) => block.lastTimestamp >= from.timestamp
    const found: StoredBlock[] = []
    let bytes = 0
    let records = 0
    for (const block of this.#blocks.from(reached)) {
      if (block.firstSeqNum >= endSeqNum) break
      found.push(copyBlock(block))
      bytes += block.meteredBytes
      records += block.endSeqNum - block.firstSeqNum
      if (bytes >= bytesMax || records >= recordsMax) break
    }
    return found
  }

  /** When the next block expires. */
  get expiresAt(): number | undefined {
    return this.#expiring.first()?.expiresAt ?? undefined
  }

  /** When the first block was trimmed, if it was. */
  get trimmedAt(): number | undefined {
    const first = this.#blocks.first()
    return first && this.#head.trims.find(({ point }) => first.endSeqNum <= point)?.at
  }

  /** Frees the block that expires next. */
  freeExpired(): void {
    this.#free(this.#expiring.first()!)
  }

  /** Frees the first block. */
  freeFirst(): void {
    this.#free(this.#blocks.first()!)
  }

  #free(block: StoredBlock): void {
    this.#blocks.delete(block)
    this.#meteredBytes -= block.meteredBytes
    if (block.expiresAt !== null) this.#expiring.delete(block)
  }
}

function copyHead(head: Head): Head {
  return { ...head, tail: { ...head.tail }, trims: head.trims.map((trim) => ({ ...trim })) }
}

/** Also keeps a small block from holding on to the large buffer that it is a view of. */
function copyBlock(block: StoredBlock): StoredBlock {
  return {
    firstSeqNum: block.firstSeqNum,
    endSeqNum: block.endSeqNum,
    firstTimestamp: block.firstTimestamp,
    lastTimestamp: block.lastTimestamp,
    meteredBytes: block.meteredBytes,
    expiresAt: block.expiresAt,
    // Not `slice`: on a Node `Buffer` that makes a view.
    data: new Uint8Array(block.data),
  }
}
