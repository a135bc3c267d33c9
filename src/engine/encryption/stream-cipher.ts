import type { AppendBatch } from '../../model/append-input.ts'
import { utf8 } from '../../model/bytes.ts'
import type { Cipher } from '../../model/config.ts'
import { type EncryptionKey, requiredKey } from '../../model/encryption-key.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { GivenKey } from '../../model/given-key.ts'
import type { AppendAck } from '../../model/info.ts'
import type { Clock } from '../../storage/clock.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import { encodePlaintext, encodeSegment, encodeSkeleton, type Sealed } from '../../storage/sealed-block.ts'
import type { AppendGroup } from '../append-group.ts'
import type { AppendPipeline, BlockEncoder } from '../append-pipeline.ts'
import type { StreamDocument } from '../documents.ts'
import { checkCipher } from '../rest.ts'
import { aesGcm } from './aes-gcm.ts'
import { BlockOpener } from './block-opener.ts'
import type { CipherSuite, MaybePromise } from './cipher-suite.ts'
import type { GivenSuites } from './ciphers.ts'
import { InOrder } from './in-order.ts'
import { splitBlock } from './split-block.ts'
import { StreamAead } from './stream-aead.ts'

/** Persisted: records that were sealed under another label don't open. */
const LABEL = 'headwater records 1'
/** How long batches that are being sealed are waited for when the engine closes or the stream is gone, in milliseconds. */
const SEALING_GRACE_MS = 5_000

/** Throws 422 `invalid` where the cipher is missing. */
export function streamCipher(
  document: StreamDocument & { readonly cipher: Cipher },
  given: GivenSuites,
): StreamCipher {
  const { cipher } = document
  checkCipher(cipher, given)
  return new StreamCipher(given.get(cipher) ?? aesGcm(), document)
}

/**
 * The records of one encrypted stream (wire-behaviour.md 10). A batch is sealed as a whole and before it gets its sequence numbers, so the
 * pipeline that gives them stays as it is, and sequencing again after a conflict needs no second encryption. What is sealed belongs to the
 * names of basin and stream: moved to another stream it doesn't open.
 */
export class StreamCipher {
  readonly #aead: StreamAead
  readonly #sealing = new InOrder()
  /** The last append that was sealed and handed to the pipeline. */
  #handedOver: Promise<unknown> = Promise.resolve()

  constructor(suite: CipherSuite, { basin, name }: Pick<StreamDocument, 'basin' | 'name'>) {
    // No name of a basin holds U+0000.
    this.#aead = new StreamAead(suite, utf8(`${LABEL}\0${basin}\0${name}\0`))
  }

  /** How many batches are being sealed. */
  get pending(): number {
    return this.#sealing.pending
  }

  /** The key, if it may be one of this stream's records. Throws 400 `bad_header`. */
  required(given: GivenKey | undefined): EncryptionKey {
    return requiredKey(given, this.#aead.cipher)
  }

  /** Seals a batch and hands it to the pipeline of its stream: in the order of the calls, and at once where the cipher answers at once. */
  append(
    pipeline: AppendPipeline,
    batch: AppendBatch,
    key: EncryptionKey,
    group: AppendGroup | undefined,
  ): Promise<AppendAck> {
    return new Promise((resolve, reject) => {
      this.#sealing.add(() => this.#encoder(batch, key), {
        resolved: (encode) => {
          const appended = pipeline.append(batch, group, encode)
          this.#handedOver = appended
          appended.then(resolve, reject)
        },
        rejected: (error) => {
          // At once: what comes next in its group may be told in the same turn.
          group?.fail()
          const tell = () => reject(error)
          // After the acks of those before it.
          this.#handedOver.then(tell, tell)
        },
      })
    })
  }

  /** The appends of which a storage made one block. Throws 500 `storage`. */
  split(block: StoredBlock): StoredBlock[] {
    return splitBlock(block)
  }

  /** For the reads that use this key. */
  opener(key: EncryptionKey): BlockOpener {
    return new BlockOpener(this.#aead, key)
  }

  /** Waits for what is being sealed, but not for a cipher that never answers: what is left then fails with this, as does what comes later. */
  async close(clock: Clock, error: HeadwaterError): Promise<void> {
    if (this.pending > 0) {
      const cancel = clock.schedule(SEALING_GRACE_MS, () => this.#sealing.end(error))
      await this.#sealing.idle()
      cancel()
    }
    this.#sealing.end(error)
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
