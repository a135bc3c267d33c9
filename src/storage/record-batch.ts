import { concatBytes } from '../model/bytes.ts'
import type { StreamPosition } from '../model/position.ts'
import { type SequencedRecord, type TextRecord, textRecord } from '../model/record.ts'
import { decodeRecords, encodeRecords } from './block-codec.ts'

/**
 * Consecutive records, as objects and as block bytes, each form made when it is first asked for and then kept: a thousand readers of
 * one batch share both.
 */
export class RecordBatch {
  #records: readonly SequencedRecord[] | undefined
  /** Blocks that are the batch one after another. */
  #blocks: readonly Uint8Array[] | undefined

  private constructor(
    records: readonly SequencedRecord[] | undefined,
    blocks: readonly Uint8Array[] | undefined,
  ) {
    this.#records = records
    this.#blocks = blocks
  }

  static ofRecords(records: readonly SequencedRecord[]): RecordBatch {
    return new RecordBatch(records, undefined)
  }

  static ofData(data: Uint8Array): RecordBatch {
    return new RecordBatch(undefined, [data])
  }

  /** Joined only when somebody asks for the bytes: who reads records in the process never does. */
  static ofBlocks(blocks: readonly Uint8Array[]): RecordBatch {
    return new RecordBatch(undefined, blocks)
  }

  get records(): readonly SequencedRecord[] {
    this.#records ??=
      this.#blocks!.length === 1 ? decodeRecords(this.#blocks![0]!) : this.#blocks!.flatMap(decodeRecords)
    return this.#records
  }

  /** See `block-codec.ts`: also the bytes of a wire `ReadBatch` without its tail. */
  get data(): Uint8Array {
    const data = this.#blocks === undefined ? encodeRecords(this.#records!) : concatBytes(this.#blocks)
    this.#blocks = [data]
    return data
  }
}

/** What a read delivers (service-interface.md "Read batch"). */
export class ReadBatch {
  readonly #batch: RecordBatch
  /** Position after the append that this batch came from; only on batches that were followed live. */
  readonly tail: StreamPosition | undefined
  readonly count: number
  readonly meteredBytes: number
  readonly lastSeqNum: number

  constructor(
    batch: RecordBatch,
    summary: { readonly count: number; readonly meteredBytes: number; readonly lastSeqNum: number },
    tail?: StreamPosition,
  ) {
    this.#batch = batch
    this.count = summary.count
    this.meteredBytes = summary.meteredBytes
    this.lastSeqNum = summary.lastSeqNum
    this.tail = tail
  }

  get records(): readonly SequencedRecord[] {
    return this.#batch.records
  }

  /** The records with strings for bytes. */
  get text(): readonly TextRecord[] {
    return this.records.map(textRecord)
  }

  /** The records as a block: see `block-codec.ts`. */
  get data(): Uint8Array {
    return this.#batch.data
  }
}
