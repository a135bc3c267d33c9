import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'

interface Span {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
}

/** The blocks that a read returns, as they are found. */
export class Selection {
  readonly blocks: StoredBlock[] = []
  readonly #range: ReadRange
  readonly #recordsMax: number
  #bytes = 0
  #records = 0

  constructor(range: ReadRange) {
    this.#range = range
    this.#recordsMax = range.recordsMax ?? Number.POSITIVE_INFINITY
  }

  get isFull(): boolean {
    return this.blocks.length > 0 && this.#isReached(0, 0)
  }

  /** Whether so much more would fill it. */
  wouldFill(bytes: number, records: number): boolean {
    return this.#isReached(bytes, records)
  }

  /** Whether blocks of this span, or ones behind it, are what the read begins with. */
  begins({ endSeqNum, lastTimestamp }: Span): boolean {
    const { from } = this.#range
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }

  /** Whether this span lies behind all that is wanted. */
  isBehind({ firstSeqNum }: Span): boolean {
    const { from, endSeqNum } = this.#range
    return firstSeqNum >= endSeqNum || ('seqNum' in from && from.seqNum >= endSeqNum)
  }

  /** Index of the first of ascending spans that the read begins with, or the length. */
  firstOf(spans: readonly Span[], length = spans.length): number {
    let low = 0
    let high = length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.begins(spans[middle]!)) high = middle
      else low = middle + 1
    }
    return low
  }

  add(block: StoredBlock): void {
    this.blocks.push(block)
    this.#bytes += block.meteredBytes
    this.#records += block.endSeqNum - block.firstSeqNum
  }

  #isReached(bytes: number, records: number): boolean {
    return this.#bytes + bytes >= this.#range.bytesMax || this.#records + records >= this.#recordsMax
  }
}
