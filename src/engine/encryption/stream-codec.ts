import type { AppendBatch } from '../../model/append-input.ts'
import { utf8 } from '../../model/bytes.ts'
import type { Cipher } from '../../model/config.ts'
import { type EncryptionKey, type RedactedKey, requiredKey } from '../../model/encryption-key.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { encodePlaintext, encodeSegment, encodeSkeleton, type Sealed } from '../../storage/sealed-block.ts'
import type { AppendGroup, AppendListener, AppendSink, BlockEncoder } from '../log/append-entry.ts'
import type { RecordCodec, RecordReader } from '../log/record-codec.ts'
import { aesGcm } from './aes-gcm.ts'
import { cipherProblem, missingCodec } from './cipher-availability.ts'
import type { CipherSuite } from './cipher-suite.ts'
import { BlockOpener, EncryptedReader, splitSealedBlock } from './encrypted-reader.ts'
import { OrderedDelivery } from './ordered-delivery.ts'
import { StreamAead } from './stream-aead.ts'

/** Persisted: records that were sealed under another label cannot be opened. */
const LABEL = 'headwater records 1'
/** How long `close` waits for a batch that is being sealed, in milliseconds. */
const SEALING_GRACE_MS = 5_000

/**
 * Returns the codec of an encrypted stream; without a suite, with the AES-256-GCM of the runtime. If the
 * cipher is missing, the codec rejects every use.
 */
export function streamCodec(
  document: Pick<StreamDocument, 'basin' | 'name'>,
  cipher: Cipher,
  suite: CipherSuite | undefined,
): RecordCodec {
  const problem = cipherProblem(cipher, suite)
  return problem === undefined ? new StreamCodec(suite ?? aesGcm(), document) : missingCodec(cipher, problem)
}

/**
 * Encrypts the records of one stream (docs/protocol.md "What is encrypted"). A batch is sealed as a whole
 * before it is sequenced, so the pipeline works as for plain streams, and sequencing again after a conflict
 * encrypts nothing again. Ciphertext is bound to the names of basin and stream: copied to another stream it
 * cannot be opened.
 */
class StreamCodec implements RecordCodec {
  readonly #aead: StreamAead
  readonly #sealing = new OrderedDelivery()
  /** The last append that was passed to the pipeline. */
  #lastAppend: OrderedListener | undefined

  constructor(suite: CipherSuite, { basin, name }: Pick<StreamDocument, 'basin' | 'name'>) {
    // Names of basins never contain U+0000.
    this.#aead = new StreamAead(suite, utf8(`${LABEL}\0${basin}\0${name}\0`))
  }

  get pending(): number {
    return this.#sealing.pending
  }

  checkKey(key: RedactedKey | undefined): void {
    requiredKey(key, this.#aead.cipher)
  }

  append(
    batch: AppendBatch,
    key: RedactedKey | undefined,
    listener: AppendListener,
    group: AppendGroup | undefined,
    to: AppendSink,
  ): void {
    let encryptionKey: EncryptionKey
    try {
      encryptionKey = requiredKey(key, this.#aead.cipher)
    } catch (error) {
      listener.failed(error)
      return
    }
    this.#sealing.add(() => this.#encoder(batch, encryptionKey), {
      resolved: (encode) => {
        this.#lastAppend = new OrderedListener(listener)
        to.enqueue(batch, this.#lastAppend, group, encode)
      },
      rejected: (error) => {
        // At once: the next append of the group may be delivered in the same turn.
        group?.fail(error)
        // After the acknowledgements of earlier appends.
        if (this.#lastAppend === undefined) listener.failed(error)
        else this.#lastAppend.onSettled(() => listener.failed(error))
      },
    })
  }

  reader(key: RedactedKey | undefined): RecordReader {
    return new EncryptedReader(new BlockOpener(this.#aead, requiredKey(key, this.#aead.cipher)))
  }

  split(blocks: readonly StoredBlock[]): readonly StoredBlock[] {
    return blocks.flatMap(splitSealedBlock)
  }

  async close(clock: Clock, errorOf: () => HeadwaterError, end?: Promise<unknown>): Promise<void> {
    const error = errorOf()
    let cancel = () => {}
    const limitSealing = () => {
      const { newest } = this.#sealing
      cancel = clock.schedule(SEALING_GRACE_MS, () => {
        if (newest !== undefined && this.#sealing.isPending(newest)) this.#sealing.end(error)
        else limitSealing()
      })
    }
    if (this.pending > 0 || end !== undefined) limitSealing()
    await (end ?? this.#sealing.idle())
    cancel()
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

/** Passes an outcome on, and then calls those that wait for it. */
class OrderedListener implements AppendListener {
  readonly #listener: AppendListener
  #waiting: (() => void)[] | undefined
  #isSettled = false

  constructor(listener: AppendListener) {
    this.#listener = listener
  }

  acked(ack: AppendAck): void {
    this.#listener.acked(ack)
    this.#settle()
  }

  failed(error: unknown): void {
    this.#listener.failed(error)
    this.#settle()
  }

  /** Calls back after the outcome, which may have been passed on already. */
  onSettled(callback: () => void): void {
    if (this.#isSettled) {
      callback()
      return
    }
    this.#waiting ??= []
    this.#waiting.push(callback)
  }

  #settle(): void {
    this.#isSettled = true
    for (const callback of this.#waiting ?? []) callback()
  }
}
