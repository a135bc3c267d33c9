import { admit, admitsAll, afterDelivering } from '../../core/read-plan.ts'
import { EMPTY_BYTES, equalSecrets } from '../../model/bytes.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { SequencedRecord } from '../../model/record.ts'
import { andThen, isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { encodeRecords } from '../../storage/block-codec.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import {
  decodeSegments,
  decodeSkeleton,
  isSealed,
  joinRecords,
  type SealedSegment,
} from '../../storage/sealed-block.ts'
import { decodeStored } from '../log/errors.ts'
import { type LiveBatch, withData } from '../log/live-tail.ts'
import type { RecordReader, UpcomingBlocks, Wanted } from '../log/record-codec.ts'
import type { StreamAead } from './stream-aead.ts'

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

/**
 * Opens the blocks of an encrypted stream with one key: returns what they would be on a plain stream. Appends
 * may have been sealed with different keys, so only those are opened of which ordinary records are wanted.
 * Fails with `decryption_failed` for another key or altered ciphertext, with `storage` for anything but a
 * block of this stream (docs/protocol.md "Decryption errors").
 */
export class BlockOpener {
  readonly #aead: StreamAead
  readonly #key: EncryptionKey

  constructor(aead: StreamAead, key: EncryptionKey) {
    this.#aead = aead
    this.#key = key
  }

  /** Returns the position and timestamp of every record, which are not encrypted. */
  positions(block: StoredBlock): readonly SequencedRecord[] {
    return decodeStored(() => this.#parse(block).skeleton)
  }

  /**
   * Returns the wanted part of a block if it can be read without opening anything, undefined if the limits
   * admit none of it, and otherwise `sealed`.
   */
  openUnsealed(block: StoredBlock, { from, endSeqNum, limits }: Wanted): StoredBlock | 'sealed' | undefined {
    const { firstSeqNum, lastTimestamp, meteredBytes } = block
    const count = block.endSeqNum - firstSeqNum
    const isWhole = firstSeqNum >= from && block.endSeqNum <= endSeqNum
    if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) return 'sealed'
    if (count === 1) return undefined
    const { segment, skeleton } = decodeStored(() => this.#parse(block))
    const inRange = skeleton.filter(({ seqNum }) => seqNum >= from && seqNum < endSeqNum)
    // Without their bodies, ordinary records count for less: this many are admitted at most.
    const atMost = admit(limits, inRange).count
    if (inRange.slice(0, atMost).some(isSealed)) return 'sealed'
    return { ...block, data: segment.skeleton }
  }

  /** Opens a live batch once for all followers with the same key. */
  openLive(live: LiveBatch): MaybePromise<ReadBatch> {
    return openOnce(live, this.#key, (sealed) => this.openWhole(sealed))
  }

  /** Opens all of a block. Needs the key only if it has ordinary records. */
  openWhole(block: StoredBlock): MaybePromise<StoredBlock> {
    const { segment, skeleton } = decodeStored(() => this.#parse(block))
    const { sealed, meteredBytes } = segment
    const opening = sealed === undefined ? EMPTY_BYTES : this.#aead.open(this.#key, sealed)
    return andThen(opening, (plaintext) =>
      decodeStored(() => ({
        ...block,
        data: encodeRecords(joinRecords(skeleton, plaintext, meteredBytes)),
      })),
    )
  }

  #parse(block: StoredBlock): { segment: SealedSegment; skeleton: readonly SequencedRecord[] } {
    const [segment, another] = decodeSegments(block.data)
    if (segment === undefined || another !== undefined) throw new RangeError('not one segment')
    if (segment.cipher !== this.#aead.cipher) throw new RangeError(`encrypted with ${segment.cipher}`)
    if (segment.meteredBytes !== block.meteredBytes) throw new RangeError('metered size differs')
    const skeleton = decodeSkeleton(segment.skeleton)
    checkPositions(block, skeleton)
    return { segment, skeleton }
  }
}

/** Compares what the key does not protect with what the storage reports of the block. */
function checkPositions(block: StoredBlock, skeleton: readonly SequencedRecord[]): void {
  let seqNum = block.firstSeqNum
  let timestamp = block.firstTimestamp
  for (const record of skeleton) {
    if (record.seqNum !== seqNum++) throw new RangeError('sequence number differs')
    if (record.timestamp < timestamp) throw new RangeError('timestamps decrease')
    timestamp = record.timestamp
  }
  const ends = seqNum === block.endSeqNum && timestamp === block.lastTimestamp
  if (!ends || skeleton[0]?.timestamp !== block.firstTimestamp) throw new RangeError('positions differ')
}

/**
 * Splits a block into the appends that a storage merged. Throws `storage` if it is not a block of sealed
 * records.
 */
export function splitSealedBlock(block: StoredBlock): StoredBlock[] {
  return decodeStored(() => {
    const segments = decodeSegments(block.data)
    // The usual case. Opening checks whether it agrees with the block.
    if (segments.length === 1) return [block]
    let { firstSeqNum } = block
    let meteredBytes = 0
    const parts = segments.map((segment): StoredBlock => {
      const records = decodeSkeleton(segment.skeleton)
      const part = {
        firstSeqNum,
        endSeqNum: firstSeqNum + records.length,
        firstTimestamp: records[0]?.timestamp ?? block.firstTimestamp,
        lastTimestamp: records.at(-1)?.timestamp ?? block.lastTimestamp,
        meteredBytes: segment.meteredBytes,
        expiresAt: block.expiresAt,
        data: segment.data,
      }
      firstSeqNum = part.endSeqNum
      meteredBytes += part.meteredBytes
      return part
    })
    const agrees =
      firstSeqNum === block.endSeqNum &&
      meteredBytes === block.meteredBytes &&
      parts[0]?.firstTimestamp === block.firstTimestamp &&
      parts.at(-1)?.lastTimestamp === block.lastTimestamp
    if (!agrees) throw new RangeError('the segments differ from their block')
    return parts
  })
}

interface OpenedBatch {
  readonly key: EncryptionKey
  readonly batch: MaybePromise<ReadBatch>
}

const openedBatches = new WeakMap<LiveBatch, Set<OpenedBatch>>()

/**
 * Opens a live batch once per key, and shares its encodings. Kept as long as the live batch; failures are not
 * kept.
 */
function openOnce(
  live: LiveBatch,
  key: EncryptionKey,
  open: (sealed: StoredBlock) => MaybePromise<StoredBlock>,
): MaybePromise<ReadBatch> {
  const known = openedBatches.get(live) ?? new Set()
  openedBatches.set(live, known)
  for (const opened of known) if (isSameKey(opened.key, key)) return opened.batch
  const batch = andThen(open(live.block), ({ data }) => withData(live, data))
  const opened: OpenedBatch = { key, batch }
  known.add(opened)
  if (isPromise(batch)) batch.catch(() => known.delete(opened))
  return batch
}

/** Compares by value, in constant time. */
function isSameKey(one: EncryptionKey, other: EncryptionKey): boolean {
  return one === other || equalSecrets(one.bytes, other.bytes)
}
