import { admitsAll, afterDelivering, type ReadLimits } from '../../core/read-limits.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { BlockOpener, Wanted } from './block-opener.ts'
import { isPromise, type MaybePromise } from './cipher-suite.ts'

/** What one read has opened, or begun to open, and not yet passed: opened once, however many batches it is delivered in. */
export class OpenedBlocks {
  readonly #opener: BlockOpener
  readonly #opened = new Map<StoredBlock, MaybePromise<StoredBlock>>()

  constructor(opener: BlockOpener) {
    this.#opener = opener
  }

  /**
   * The first of the blocks at hand as far as it is wanted, or the whole of it; undefined when the limits admit nothing of it. When the cipher answers
   * later, it is asked for the others of the batch as well, which `room` bounds: for those that are sure to be in it as a whole.
   */
  open(
    block: StoredBlock,
    wanted: Wanted,
    ahead: { readonly blocks: () => readonly StoredBlock[]; readonly room: ReadLimits },
  ): MaybePromise<StoredBlock | undefined> {
    const known = this.#opened.get(block)
    if (known !== undefined) return known
    const unsealed = this.#opener.unsealed(block, wanted)
    if (unsealed !== 'sealed') return unsealed
    const opening = this.#openWhole(block)
    if (isPromise(opening)) this.#openAhead(block, ahead.blocks(), wanted.endSeqNum, ahead.room)
    return opening
  }

  /** The read is past it. */
  forget(block: StoredBlock): void {
    this.#opened.delete(block)
  }

  #openAhead(first: StoredBlock, others: readonly StoredBlock[], endSeqNum: number, room: ReadLimits): void {
    // As if all of the first were wanted.
    let left = afterDelivering(room, countOf(first), first.meteredBytes)
    for (const block of others) {
      const { meteredBytes, lastTimestamp } = block
      const isCertain = block.endSeqNum <= endSeqNum
      if (!isCertain || !admitsAll(left, { count: countOf(block), meteredBytes, lastTimestamp })) return
      if (!this.#opened.has(block)) this.#openEarly(block)
      left = afterDelivering(left, countOf(block), meteredBytes)
    }
  }

  /** What it fails with is told to whoever wants the block. */
  #openEarly(block: StoredBlock): void {
    try {
      const opening = this.#openWhole(block)
      if (isPromise(opening)) opening.catch(() => {})
    } catch {
      // Nothing is kept: it fails again when it is wanted.
    }
  }

  #openWhole(block: StoredBlock): MaybePromise<StoredBlock> {
    const opening = this.#opener.openWhole(block)
    this.#opened.set(block, opening)
    return opening
  }
}

function countOf({ firstSeqNum, endSeqNum }: StoredBlock): number {
  return endSeqNum - firstSeqNum
}
