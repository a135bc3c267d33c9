import type { ReadRange } from '../../../src/storage/contract.ts'
import type { BlockSummary } from './page.ts'

/** Takes what a read wants of the blocks of a log, which come in order. */
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

  /** Whether no further block is wanted. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** Metered. */
  get bytesLeft(): number {
    return this.#bytesLeft
  }

  get recordsLeft(): number {
    return this.#recordsLeft
  }

  add(block: Block): void {
    if (this.#isDone || !this.#isReached(block)) return
    if (block.firstSeqNum >= this.#range.endSeqNum) {
      this.#isDone = true
      return
    }
    this.blocks.push(block)
    this.#bytesLeft -= block.meteredBytes
    this.#recordsLeft -= block.endSeqNum - block.firstSeqNum
    this.#isDone = this.#bytesLeft <= 0 || this.#recordsLeft <= 0
  }

  #isReached({ endSeqNum, lastTimestamp }: Block): boolean {
    const { from } = this.#range
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }
}
