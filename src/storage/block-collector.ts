import type { ReadRange, StoredBlock } from './contract.ts'

/** A block without its data. */
export type BlockSummary = Omit<StoredBlock, 'data'>

/** Selects the blocks that a read returns. They are added in the order of the log. */
export class BlockCollector<Block extends BlockSummary = BlockSummary> {
  /** The blocks that the read wants, so far. */
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

  /** How many metered bytes the read still wants. */
  get bytesLeft(): number {
    return this.#bytesLeft
  }

  /** How many records the read still wants; infinite without a limit. */
  get recordsLeft(): number {
    return this.#recordsLeft
  }

  /** Adds a block, unless the read begins after it, or is done. */
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
