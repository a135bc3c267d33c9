import { admitsAll, afterDelivering } from '../../core/read-limits.ts'
import type { StreamPosition } from '../../model/position.ts'
import { isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import type { LiveBatch } from '../log/live-tail.ts'
import type { RecordReader, UpcomingBlocks, Wanted } from '../log/record-codec.ts'
import type { BlockOpener } from './block-opener.ts'

/**
 * Opens the blocks of an encrypted stream for one read. Keeps the blocks that the read has not passed yet:
 * each is opened once, however many batches it is delivered in.
 */
export class EncryptedReader implements RecordReader {
  readonly #opener: BlockOpener
  readonly #opened = new Map<StoredBlock, MaybePromise<StoredBlock>>()

  constructor(opener: BlockOpener) {
    this.#opener = opener
  }

  positions(block: StoredBlock): readonly StreamPosition[] {
    return this.#opener.positions(block)
  }

  /**
   * Opens a block. With an asynchronous cipher, also begins to open the following blocks that are certain to
   * fit into the batch as a whole.
   */
  open(
    block: StoredBlock,
    wanted: Wanted,
    ahead?: () => UpcomingBlocks,
  ): MaybePromise<StoredBlock | undefined> {
    const known = this.#opened.get(block)
    if (known !== undefined) return known
    const unsealed = this.#opener.openUnsealed(block, wanted)
    if (unsealed !== 'sealed') return unsealed
    // Followers pass no `ahead`, and never `forget`.
    if (ahead === undefined) return this.#opener.openWhole(block)
    const opening = this.#openWhole(block)
    if (isPromise(opening)) this.#openAhead(block, ahead(), wanted.endSeqNum)
    return opening
  }

  forget(block: StoredBlock): void {
    this.#opened.delete(block)
  }

  openLive(live: LiveBatch): MaybePromise<ReadBatch> {
    return this.#opener.openLive(live)
  }

  #openAhead(first: StoredBlock, { blocks, room }: UpcomingBlocks, endSeqNum: number): void {
    // As if all of the first block were wanted.
    let left = afterDelivering(room, countOf(first), first.meteredBytes)
    for (const block of blocks) {
      const { meteredBytes, lastTimestamp } = block
      const isCertain = block.endSeqNum <= endSeqNum
      if (!isCertain || !admitsAll(left, { count: countOf(block), meteredBytes, lastTimestamp })) return
      if (!this.#opened.has(block)) this.#openEarly(block)
      left = afterDelivering(left, countOf(block), meteredBytes)
    }
  }

  /** A failure is reported when the block is wanted. */
  #openEarly(block: StoredBlock): void {
    try {
      const opening = this.#openWhole(block)
      if (isPromise(opening)) opening.catch(() => {})
    } catch {
      // Not kept, so opening it fails again when it is wanted.
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
