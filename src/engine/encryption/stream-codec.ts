import { admit, admitsAll } from '../../core/read-plan.ts'
import { type AppendBatch, type BatchPart, ownBytes } from '../../model/append-input.ts'
import { EMPTY_BYTES, utf8 } from '../../model/bytes.ts'
import { type EncryptionKey, requiredKey } from '../../model/encryption-key.ts'
import type { StreamPosition } from '../../model/position.ts'
import { meteredBytesOf, type SequencedRecord } from '../../model/record.ts'
import { andThen, isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { SerialQueue } from '../../runtime/queues.ts'
import { encodeRecords } from '../../storage/block-codec.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import {
  decodeSegments,
  decodeSkeleton,
  encodePlaintext,
  encodeSegment,
  encodeSkeleton,
  isSealed,
  joinRecords,
  type Sealed,
  type SealedSegment,
} from '../../storage/sealed-block.ts'
import { decodeStored } from '../errors.ts'
import type { AppendGroup, AppendListener, AppendSink, BlockEncoder } from '../log/append-recovery.ts'
import { type LiveBatch, withData } from '../log/live-tail.ts'
import type { RecordCodec, RecordReader, Wanted } from '../log/record-codec.ts'
import { aesGcm } from './aes-gcm.ts'
import { type CipherSuite, StreamCipher } from './cipher-suite.ts'

/** Persisted: records that were sealed under another label cannot be opened. */
const LABEL = 'headwater records 1'

/** Returns the codec of an encrypted stream; without a suite, with the AES-256-GCM of the runtime. */
export function streamCodec(
  { basin, name }: Pick<StreamDocument, 'basin' | 'name'>,
  suite: CipherSuite = aesGcm(),
): RecordCodec {
  // Names of basins never contain U+0000.
  return new StreamCodec(new StreamCipher(suite, utf8(`${LABEL}\0${basin}\0${name}\0`)))
}

/**
 * Encrypts the records of one stream (docs/protocol.md "What is encrypted"). A batch is sealed as a whole
 * before it is sequenced, so the pipeline works as for plain streams, and sequencing again after a conflict
 * encrypts nothing again. Ciphertext is bound to the names of basin and stream: copied to another stream it
 * cannot be opened.
 */
class StreamCodec implements RecordCodec {
  pending = 0
  readonly #cipher: StreamCipher
  readonly #turns = new SerialQueue()

  constructor(cipher: StreamCipher) {
    this.#cipher = cipher
  }

  checkKey(key: EncryptionKey | undefined): void {
    requiredKey(key, this.#cipher.name)
  }

  append(
    batch: AppendBatch,
    key: EncryptionKey | undefined,
    listener: AppendListener,
    group: AppendGroup | undefined,
    to: AppendSink,
  ): void {
    ownBytes(batch)
    const sealing = this.#seal(batch, requiredKey(key, this.#cipher.name))
    const isFirst = this.pending === 0
    if (isFirst && !isPromise(sealing)) {
      to.enqueue(batch, listener, group, sealing)
      return
    }
    // Batches are sealed at the same time, and passed on in order.
    if (isPromise(sealing)) sealing.catch(() => {})
    this.pending++
    void this.#turns.run(async () => {
      try {
        to.enqueue(batch, listener, group, await sealing)
      } catch (error) {
        // Before the next append of the group is passed on.
        group?.fail(error)
        listener.failed(error)
      } finally {
        this.pending--
      }
    })
  }

  #seal(batch: AppendBatch, key: EncryptionKey): MaybePromise<BlockEncoder> {
    if (batch.parts === undefined) return this.#sealPart(batch, key)
    return Promise.all(batch.parts.map((part) => this.#sealPart(part, key))).then(
      (encoders) => (sequenced, part) => encoders[part]!(sequenced, part),
    )
  }

  #sealPart({ records, meteredBytes }: BatchPart, key: EncryptionKey): MaybePromise<BlockEncoder> {
    const cipher = this.#cipher.name
    const encoder =
      (sealed: Sealed | undefined): BlockEncoder =>
      (sequenced) =>
        encodeSegment({ cipher, meteredBytes, skeleton: encodeSkeleton(sequenced), sealed })
    const plaintext = encodePlaintext(records)
    return plaintext === undefined ? encoder(undefined) : andThen(this.#cipher.seal(key, plaintext), encoder)
  }

  reader(key: EncryptionKey | undefined): RecordReader {
    return new EncryptedReader(this.#cipher, requiredKey(key, this.#cipher.name))
  }

  split(blocks: readonly StoredBlock[]): readonly StoredBlock[] {
    return blocks.flatMap((block) => decodeStored(() => appendsOf(block)))
  }
}

/** Returns the appends that a storage merged into a block. Throws `RangeError` if it is damaged. */
function appendsOf(block: StoredBlock): readonly StoredBlock[] {
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
}

/** A block whose skeleton agrees with what the storage reports of it. */
interface ParsedBlock {
  readonly segment: SealedSegment
  readonly skeleton: readonly SequencedRecord[]
}

/**
 * Opens the blocks of an encrypted stream with one key: returns what they would be on a plain stream. Appends
 * may have been sealed with different keys, so only those are opened of which ordinary records are wanted.
 * Fails with `decryption_failed` for another key or altered ciphertext, with `storage` for anything but a
 * block of this stream (docs/protocol.md "Decryption errors").
 */
class EncryptedReader implements RecordReader {
  readonly #cipher: StreamCipher
  readonly #key: EncryptionKey

  constructor(cipher: StreamCipher, key: EncryptionKey) {
    this.#cipher = cipher
    this.#key = key
  }

  /** Positions and timestamps are not encrypted. */
  positions(block: StoredBlock): readonly StreamPosition[] {
    return this.#parse(block).skeleton
  }

  open(block: StoredBlock, { from, endSeqNum, limits }: Wanted): MaybePromise<StoredBlock | undefined> {
    const { firstSeqNum, lastTimestamp, meteredBytes } = block
    const count = block.endSeqNum - firstSeqNum
    const isWhole = firstSeqNum >= from && block.endSeqNum <= endSeqNum
    if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) return this.#open(block)
    if (count === 1) return undefined
    const parsed = this.#parse(block)
    const inRange = parsed.skeleton.filter(({ seqNum }) => seqNum >= from && seqNum < endSeqNum)
    // Without their bodies, ordinary records count for less: this many are admitted at most.
    const sized = inRange.map(({ timestamp, headers, body }) => ({
      timestamp,
      meteredBytes: meteredBytesOf(headers, body),
    }))
    const atMost = admit(limits, sized).count
    if (inRange.slice(0, atMost).some(isSealed)) return this.#open(block, parsed)
    return { ...block, data: parsed.segment.skeleton }
  }

  openLive(live: LiveBatch): MaybePromise<ReadBatch> {
    return andThen(this.#open(live.block), ({ data }) => withData(live, data))
  }

  /** Opens all of a block. Needs the key only if it has ordinary records. */
  #open(block: StoredBlock, { segment, skeleton } = this.#parse(block)): MaybePromise<StoredBlock> {
    const { sealed, meteredBytes } = segment
    const opening = sealed === undefined ? EMPTY_BYTES : this.#cipher.open(this.#key, sealed)
    return andThen(opening, (plaintext) => {
      const records = decodeStored(() => joinRecords(skeleton, plaintext, meteredBytes))
      return { ...block, data: encodeRecords(records) }
    })
  }

  #parse(block: StoredBlock): ParsedBlock {
    return decodeStored(() => {
      const [segment, another] = decodeSegments(block.data)
      if (segment === undefined || another !== undefined) throw new RangeError('not one segment')
      if (segment.cipher !== this.#cipher.name) throw new RangeError(`encrypted with ${segment.cipher}`)
      if (segment.meteredBytes !== block.meteredBytes) throw new RangeError('metered size differs')
      const skeleton = decodeSkeleton(segment.skeleton)
      checkPositions(block, skeleton)
      return { segment, skeleton }
    })
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
