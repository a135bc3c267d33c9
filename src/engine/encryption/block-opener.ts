import { admit, admitsAll, type ReadLimits } from '../../core/read-limits.ts'
import { EMPTY_BYTES } from '../../model/bytes.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { SequencedRecord } from '../../model/record.ts'
import { encodeRecords } from '../../storage/block-codec.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import {
  decodeSegments,
  decodeSkeleton,
  isSealed,
  joinRecords,
  type Segment,
} from '../../storage/sealed-block.ts'
import { intact } from '../damage.ts'
import type { LiveBatch } from '../live-tail.ts'
import { type MaybePromise, whenThere } from './cipher-suite.ts'
import { OpenedBlocks } from './opened-blocks.ts'
import { openedOnce } from './opened-live.ts'
import { splitBlock } from './split-block.ts'
import type { StreamAead } from './stream-aead.ts'

/** Which records of a block a read asks for: from `from` on, below `endSeqNum`, as far as the limits go. */
export interface Wanted {
  readonly from: number
  readonly endSeqNum: number
  readonly limits: ReadLimits
}

/**
 * Makes of an encrypted stream's blocks, with a key, what they would be on a plain stream. Appends may have been sealed with different keys: only
 * those are opened of which ordinary records are wanted. Fails with 400 `decryption_failed` for another key or changed ciphertext, with 500
 * `storage` for what is no block of this stream (wire-behaviour.md 10.4).
 */
export class BlockOpener {
  readonly #aead: StreamAead
  readonly #key: EncryptionKey

  constructor(aead: StreamAead, key: EncryptionKey) {
    this.#aead = aead
    this.#key = key
  }

  /** The appends of which a storage made one block: each may have its own key. */
  split(block: StoredBlock): StoredBlock[] {
    return splitBlock(block)
  }

  /** What a read opens of a stored stream. */
  blocks(): OpenedBlocks {
    return new OpenedBlocks(this)
  }

  /** Where the records of a block are and when they are from: all of it that is known without opening it. */
  positions(block: StoredBlock): readonly SequencedRecord[] {
    return intact(() => this.#parse(block).skeleton)
  }

  /** The block as it would be on a plain stream, if not in all then in what is wanted of it; undefined when the limits admit nothing of it. */
  open(block: StoredBlock, wanted: Wanted): MaybePromise<StoredBlock | undefined> {
    const unsealed = this.unsealed(block, wanted)
    return unsealed === 'sealed' ? this.openWhole(block) : unsealed
  }

  /** What {@link open} gives where nothing has to be opened for it; else `sealed`. */
  unsealed(block: StoredBlock, { from, endSeqNum, limits }: Wanted): StoredBlock | 'sealed' | undefined {
    const { firstSeqNum, lastTimestamp, meteredBytes } = block
    const count = block.endSeqNum - firstSeqNum
    const isWhole = firstSeqNum >= from && block.endSeqNum <= endSeqNum
    if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) return 'sealed'
    if (count === 1) return undefined
    const { segment, skeleton } = intact(() => this.#parse(block))
    const inRange = skeleton.filter(({ seqNum }) => seqNum >= from && seqNum < endSeqNum)
    // Ordinary records count here with less than they have: not all of these may be admitted in the end, but no others.
    const atMost = admit(limits, inRange).count
    if (inRange.slice(0, atMost).some(isSealed)) return 'sealed'
    return { ...block, data: segment.skeleton }
  }

  /** The same batch for all followers with the same key. */
  openLive(live: LiveBatch): MaybePromise<ReadBatch> {
    return openedOnce(live, this.#key, (sealed) => this.openWhole(sealed))
  }

  /** All of a block, with the key that its ordinary records need. */
  openWhole(block: StoredBlock): MaybePromise<StoredBlock> {
    const { segment, skeleton } = intact(() => this.#parse(block))
    const { sealed, meteredBytes } = segment
    const plaintext = sealed === undefined ? EMPTY_BYTES : this.#aead.open(this.#key, sealed)
    return whenThere(plaintext, (there) =>
      intact(() => ({ ...block, data: encodeRecords(joinRecords(skeleton, there, meteredBytes)) })),
    )
  }

  #parse(block: StoredBlock): { segment: Segment; skeleton: readonly SequencedRecord[] } {
    const [segment, another] = decodeSegments(block.data)
    if (segment === undefined || another !== undefined) throw new RangeError('not one segment')
    if (segment.cipher !== this.#aead.cipher) throw new RangeError(`encrypted with ${segment.cipher}`)
    if (segment.meteredBytes !== block.meteredBytes) throw new RangeError('another metered size')
    const skeleton = decodeSkeleton(segment.skeleton)
    checkPositions(block, skeleton)
    return { segment, skeleton }
  }
}

/** What the key doesn't protect has to agree with what the storage says of the block. */
function checkPositions(block: StoredBlock, skeleton: readonly SequencedRecord[]): void {
  let seqNum = block.firstSeqNum
  let timestamp = block.firstTimestamp
  for (const record of skeleton) {
    if (record.seqNum !== seqNum++) throw new RangeError('another sequence number')
    if (record.timestamp < timestamp) throw new RangeError('a timestamp before the one before it')
    timestamp = record.timestamp
  }
  const ends = seqNum === block.endSeqNum && timestamp === block.lastTimestamp
  if (!ends || skeleton[0]?.timestamp !== block.firstTimestamp) throw new RangeError('other positions')
}
