import type { AppendBatch } from '../../model/append-input.ts'
import { utf8 } from '../../model/bytes.ts'
import { type EncryptionKey, requiredKey } from '../../model/encryption-key.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import { encodePlaintext, encodeSegment, encodeSkeleton, type Sealed } from '../../storage/sealed-block.ts'
import type { BlockEncoder } from '../append-pipeline.ts'
import type { StreamDocument } from '../documents.ts'
import { BlockOpener } from './block-opener.ts'
import type { CipherSuite, MaybePromise } from './cipher-suite.ts'
import { InOrder, type Outcome } from './in-order.ts'
import { splitBlock } from './split-block.ts'
import { StreamAead } from './stream-aead.ts'

export { aesGcm } from './aes-gcm.ts'

/** Persisted: records that were sealed under another label don't open. */
const LABEL = 'headwater records 1'

/**
 * The records of one encrypted stream (wire-behaviour.md 10). A batch is sealed as a whole and before it gets its sequence numbers, so the
 * pipeline that gives them stays as it is, and sequencing again after a conflict needs no second encryption. What is sealed belongs to the
 * names of basin and stream: moved to another stream it doesn't open.
 */
export class StreamCipher {
  readonly #aead: StreamAead
  readonly #sealing = new InOrder()

  constructor(suite: CipherSuite, { basin, name }: Pick<StreamDocument, 'basin' | 'name'>) {
    // No name of a basin holds U+0000.
    this.#aead = new StreamAead(suite, utf8(`${LABEL}\0${basin}\0${name}\0`))
  }

  /** How many batches are being sealed. */
  get pending(): number {
    return this.#sealing.pending
  }

  /** The key, if it may be one of this stream's records. Throws 400 `bad_header`. */
  required(key: EncryptionKey | undefined): EncryptionKey {
    return requiredKey(key, this.#aead.cipher)
  }

  /** Seals a batch and gives what writes its block. Tells in the order of the calls, and at once where the cipher answers at once. */
  seal(batch: AppendBatch, key: EncryptionKey, outcome: Outcome<BlockEncoder>): void {
    this.#sealing.add(() => this.#encoder(batch, key), outcome)
  }

  /** The appends of which a storage made one block. Throws 500 `storage`. */
  split(block: StoredBlock): StoredBlock[] {
    return splitBlock(block)
  }

  /** For the reads that use this key. */
  opener(key: EncryptionKey): BlockOpener {
    return new BlockOpener(this.#aead, key)
  }

  /** Fails the batches that are still being sealed, and those to come. */
  end(error: HeadwaterError): void {
    this.#sealing.end(error)
  }

  /** Resolves once no batch is being sealed. */
  idle(): Promise<void> {
    return this.#sealing.idle()
  }

  #encoder({ records, meteredBytes }: AppendBatch, key: EncryptionKey): MaybePromise<BlockEncoder> {
    const { cipher } = this.#aead
    const encoder =
      (sealed: Sealed | undefined): BlockEncoder =>
      (sequenced) =>
        encodeSegment({ cipher, meteredBytes, skeleton: encodeSkeleton(sequenced), sealed })
    const plaintext = encodePlaintext(records)
    return plaintext === undefined ? encoder(undefined) : this.#aead.seal(key, plaintext, encoder)
  }
}
