import { wantsPart } from '../../../../src/storage/block-pages.ts'
import type { ReadRange, StoredBlock } from '../../../../src/storage/contract.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'

interface Span {
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
}

/** Collects the blocks that a read returns. */
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

  /** Whether this many more bytes or records would fill it. */
  wouldFill(bytes: number, records: number): boolean {
    return this.#isReached(bytes, records)
  }

  /** Whether the span ends at or after the start of the read. */
  reachesStart({ endSeqNum, lastTimestamp }: Span): boolean {
    const { from } = this.#range
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }

  /** Whether the span begins at or after the end of the read. */
  isPastEnd({ firstSeqNum }: Span): boolean {
    const { from, endSeqNum } = this.#range
    return firstSeqNum >= endSeqNum || ('seqNum' in from && from.seqNum >= endSeqNum)
  }

  /** Index of the first of ascending spans that {@link reachesStart}; `length` if none does. */
  firstIndexIn(spans: readonly Span[], length = spans.length): number {
    return lowerBound(spans, (span) => this.reachesStart(span), length)
  }

  /** The range if the read begins with this block and wants only some of its records. */
  partOf(block: Span & Pick<StoredBlock, 'meteredBytes'>): ReadRange | undefined {
    // The first timestamp is in the file: that of the read may be later.
    const isPart = this.blocks.length === 0 && wantsPart({ ...block, firstTimestamp: 0 }, this.#range)
    return isPart ? this.#range : undefined
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
