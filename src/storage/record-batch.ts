import { concatBytes, EMPTY_BYTES } from '../model/bytes.ts'
import type { StreamTail } from '../model/position.ts'
import {
  isCommandShaped,
  meteredBytesOf,
  type RecordAs,
  type RecordFormat,
  type SequencedRecord,
  type TextRecord,
  textRecord,
} from '../model/record.ts'
import { decodeRecords, encodeRecords } from './block-codec.ts'

/**
 * Consecutive records, as objects and as the bytes of a block. Each form is created on first use and then
 * kept, so that all readers of a batch share it.
 */
export class RecordBatch {
  #records: readonly SequencedRecord[] | undefined
  #text: readonly TextRecord[] | undefined
  /** Blocks whose concatenation is the batch. */
  #blocks: readonly Uint8Array[] | undefined
  #copy: RecordBatch | undefined

  /**
   * Takes records, blocks whose concatenation is the batch, or both. Joins the blocks only when `data` is
   * read, which in-process readers never do.
   */
  constructor(records: readonly SequencedRecord[] | undefined, blocks?: readonly Uint8Array[]) {
    this.#records = records
    this.#blocks = blocks
  }

  /** Makes a batch of records that belong to one reader, such as those of a response: its own copy. */
  static received(records: readonly SequencedRecord[]): RecordBatch {
    const batch = new RecordBatch(records)
    batch.#copy = batch
    return batch
  }

  /** The same records in memory that a caller may write to. Shared by all callers. */
  get copy(): RecordBatch {
    this.#copy ??= new RecordBatch(
      undefined,
      this.parts.map((part) => new Uint8Array(part)),
    )
    return this.#copy
  }

  /** Makes a batch of other records of the same owner. */
  of(records: readonly SequencedRecord[]): RecordBatch {
    return this.#copy === this ? RecordBatch.received(records) : new RecordBatch(records)
  }

  get records(): readonly SequencedRecord[] {
    this.#records ??=
      this.#blocks!.length === 1 ? decodeRecords(this.#blocks![0]!) : this.#blocks!.flatMap(decodeRecords)
    return this.#records
  }

  /** The records with strings in place of bytes. */
  get text(): readonly TextRecord[] {
    this.#text ??= this.records.map(textRecord)
    return this.#text
  }

  /** See `block-codec.ts`: also the bytes of a wire `ReadBatch` without its tail, in one or more parts. */
  get parts(): readonly Uint8Array[] {
    this.#blocks ??= [encodeRecords(this.#records!)]
    return this.#blocks
  }

  get data(): Uint8Array {
    if (this.parts.length > 1) this.#blocks = [concatBytes(this.parts)]
    return this.parts[0] ?? EMPTY_BYTES
  }
}

interface BatchSummary {
  readonly count: number
  readonly meteredBytes: number
  readonly lastSeqNum: number
}

/** The records of a response and, if it has one, the tail of the stream. */
export interface ReceivedBatch {
  readonly records: readonly SequencedRecord[]
  readonly tail: StreamTail | undefined
}

/** Consecutive records of a read, with bodies and headers in the format of the read. */
export class ReadBatch<Format extends RecordFormat = 'bytes'> {
  /** The tail of the stream, if the batch was read as it was appended or ends at the tail. */
  readonly tail: StreamTail | undefined
  /** The number of records. */
  readonly count: number
  /** The metered size of the records, in bytes. */
  readonly meteredBytes: number
  /** The sequence number of the last record that was read, commands included; -1 if there is none. */
  readonly lastSeqNum: number
  readonly #batch: RecordBatch
  readonly #format: RecordFormat
  #encodings: Map<string, unknown> | undefined

  /** @internal */
  constructor(
    batch: RecordBatch,
    { count, meteredBytes, lastSeqNum }: BatchSummary,
    tail?: StreamTail,
    format: RecordFormat = 'bytes',
  ) {
    this.#batch = batch
    this.count = count
    this.meteredBytes = meteredBytes
    this.lastSeqNum = lastSeqNum
    this.tail = tail
    this.#format = format
  }

  /** @internal Makes a batch of what a client received. */
  static received({ records, tail }: ReceivedBatch): ReadBatch {
    const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
    const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? -1 }
    return new ReadBatch(RecordBatch.received(records), summary, tail)
  }

  /** The records, in order. Shared with other readers: do not write to their bytes. */
  get records(): readonly RecordAs<Format>[] {
    const records = this.#format === 'bytes' ? this.#batch.records : this.#batch.text
    return records as readonly RecordAs<RecordFormat>[] as readonly RecordAs<Format>[]
  }

  /**
   * @internal The same batch in a format, for a caller of the library: what it writes to the bytes of a
   * record must not change what is stored.
   */
  as<Other extends RecordFormat>(format: Other): ReadBatch<Other> {
    const batch = format === 'bytes' ? this.#batch.copy : this.#batch
    return new ReadBatch<Other>(batch, this, this.tail, format)
  }

  /** @internal The same batch without its command records; it may be empty. */
  withoutCommands(): ReadBatch<Format> {
    const records = this.#batch.records.filter(({ headers }) => !isCommandShaped(headers))
    if (records.length === this.count) return this
    const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
    const summary = { count: records.length, meteredBytes, lastSeqNum: this.lastSeqNum }
    return new ReadBatch<Format>(this.#batch.of(records), summary, this.tail, this.#format)
  }

  /** @internal The same batch with a tail. */
  withTail(tail: StreamTail): ReadBatch<Format> {
    return new ReadBatch<Format>(this.#batch, this, tail, this.#format)
  }

  /**
   * @internal An encoding of the batch, made on first use and then kept: all readers of a live batch share
   * it. One that cannot be made is tried again.
   */
  encoding<Encoded>(name: string, encode: () => Encoded): Encoded {
    this.#encodings ??= new Map()
    const encoded = this.#encodings.get(name) ?? encode()
    this.#encodings.set(name, encoded)
    return encoded as Encoded
  }

  /** @internal The records as a block: see `block-codec.ts`. */
  get data(): Uint8Array {
    return this.#batch.data
  }

  /** @internal The same in one or more parts. */
  get parts(): readonly Uint8Array[] {
    return this.#batch.parts
  }
}
