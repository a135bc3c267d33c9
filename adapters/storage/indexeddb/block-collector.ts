import type { ReadRange } from '../../../src/storage/contract.ts'
import type { BlockSummary } from './page.ts'

/** Collects the blocks of a log that a read wants. They are added in order. */
export class BlockCollector<Block extends BlockSummary = BlockSummary> {
  readonly blocks: Block[] = []
  readonly #range: ReadRange
  #bytesLeft: number
  #recordsLeft: number
  #isDone: boolean

  constructor(range: ReadRange) {
    const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
    this.#range = range
    this.#bytesLeft = bytesMax
    this.#recordsLeft = recordsMax
    this.#isDone = 'seqNum' in from && from.seqNum >= endSeqNum
  }

  /** Whether the read wants no further block. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** In metered bytes. */
  get bytesLeft(): number {
    return this.#bytesLeft
  }

  get recordsLeft(): number {
    return this.#recordsLeft
  }

  add(block: Block): void {
    if (this.#isDone || !this.#hasReached(block)) return
    if (block.firstSeqNum >= this.#range.endSeqNum) {
      this.#isDone = true
      return
    }
    this.blocks.push(block)
    this.#bytesLeft -= block.meteredBytes
    this.#recordsLeft -= block.endSeqNum - block.firstSeqNum
    this.#isDone = this.#bytesLeft <= 0 || this.#recordsLeft <= 0
  }

  #hasReached({ endSeqNum, lastTimestamp }: Block): boolean {
    const { from } = this.#range
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }
}
