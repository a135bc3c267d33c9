import type { ReadLimits } from '../../core/read-plan.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import { spansOf } from '../../storage/cut-block.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import { decodeStored } from '../errors.ts'
import type { AppendGroup, AppendListener, AppendSink } from './append-recovery.ts'
import type { LiveBatch } from './live-tail.ts'

/** How the records of one stream are stored: `PLAIN`, or encrypted with a cipher. */
export interface RecordCodec {
  /** The number of batches being encrypted, which are not in the pipeline yet. */
  readonly pending: number
  /**
   * Throws `encryption_key_invalid` if the stream needs a key and this is none, `invalid` if this engine
   * lacks the stream's cipher.
   */
  checkKey(key: EncryptionKey | undefined): void
  /** Hands a batch to `to`, in the order of the calls. Throws as `checkKey` does. */
  append(
    batch: AppendBatch,
    key: EncryptionKey | undefined,
    listener: AppendListener,
    group: AppendGroup | undefined,
    to: AppendSink,
  ): void
  /** Returns the reader of one read. Throws as `checkKey` does. */
  reader(key: EncryptionKey | undefined): RecordReader
  /** Splits blocks into the appends that a storage merged. Throws `storage` if a block is damaged. */
  split(blocks: readonly StoredBlock[]): readonly StoredBlock[]
}

export interface Wanted {
  readonly from: number
  readonly endSeqNum: number
  readonly limits: ReadLimits
}

/** Turns the stored blocks of a stream into plain ones, for one read. */
export interface RecordReader {
  /** The position of every record in a block. Decrypts nothing. */
  positions(block: StoredBlock): readonly StreamPosition[]
  /** Returns at least what is wanted of the block in plain text; undefined if the limits admit none of it. */
  open(block: StoredBlock, wanted: Wanted): MaybePromise<StoredBlock | undefined>
  /** Returns the plain form of a live batch. */
  openLive(live: LiveBatch): MaybePromise<ReadBatch>
}

const PLAIN_READER: RecordReader = {
  positions: (block) => decodeStored(() => spansOf(block)),
  open: (block) => block,
  openLive: ({ batch }) => batch,
}

export const PLAIN: RecordCodec = {
  pending: 0,
  checkKey() {},
  append: (batch, _key, listener, group, to) => to.enqueue(batch, listener, group),
  reader: () => PLAIN_READER,
  split: (blocks) => blocks,
}
