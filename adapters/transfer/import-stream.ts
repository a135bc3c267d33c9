import { fenceRecord, type SequencedRecord, type StreamPosition } from '../../src/index.ts'
import { BatchSize } from '../../src/model/append-input.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import type { StreamConfig } from '../../src/model/config.ts'
import { encodedBytesMaxOf, equalHeaders, meteredBytesOf } from '../../src/model/record.ts'
import type { ExportCounts, ExportedStream } from './export-entry.ts'
import { type Service, streamLabel, TransferError, type TransferFilter } from './service.ts'

export interface ImportOptions {
  readonly filter: TransferFilter
  /** Continues streams that already have records. */
  readonly resume: boolean
  /** Numbers the records of each stream from 0, which any target takes. */
  readonly renumber?: boolean | undefined
  /** Called after each batch of entries, with the stream that they belong to. */
  readonly onProgress?: ((counts: ExportCounts, stream: string | undefined) => void) | undefined
  /** The time in milliseconds that decides whether a stream has expired. Now by default. */
  readonly now?: number | undefined
  /** Called for what is left out or changed. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Imports one stream. One append is in flight while the next batch is collected. */
export class StreamImport {
  readonly #stream: ExportedStream
  readonly #service: Service
  readonly #options: ImportOptions
  /** The tail of the target when the append in flight has completed. */
  #end: StreamPosition
  #inFlight: Promise<void> = Promise.resolve()
  #batch: SequencedRecord[] = []
  #batchSize = new BatchSize()
  /** The last record of the export that the target has already. */
  #before: SequencedRecord | undefined
  /** Whether a continued stream is known to have the records of the export. */
  #isVerified: boolean
  /** Whether a warning has said that records get other times. */
  #hasOtherTimes = false
  /** The number of the next record of the export, if records are renumbered. */
  #next = 0
  appended = 0

  private constructor(
    stream: ExportedStream,
    service: Service,
    options: ImportOptions,
    existing: StreamPosition | undefined,
  ) {
    this.#stream = stream
    this.#service = service
    this.#options = options
    this.#end = existing ?? { seqNum: 0, timestamp: 0 }
    this.#isVerified = existing === undefined
  }

  get name(): string {
    return this.#stream.name
  }

  static async begin(
    stream: ExportedStream,
    isBasinNew: boolean,
    service: Service,
    options: ImportOptions,
  ): Promise<StreamImport> {
    const about = streamLabel(stream)
    if (stream.cipher !== null && stream.tail.seqNum > 0 && !service.hasKey) {
      throw new TransferError(`${about} is encrypted; a key is required`)
    }
    const existing = isBasinNew ? undefined : await service.findStream(stream)
    if (existing !== undefined && existing.cipher !== stream.cipher) {
      throw new TransferError(`${about} already exists with another cipher: ${existing.cipher ?? 'none'}`)
    }
    const tail = existing && (await service.tail(stream))
    if (tail !== undefined && tail.seqNum > 0 && !options.resume) {
      throw new TransferError(`${about} already has records; continue it with \`--resume\``)
    }
    const started = new StreamImport(stream, service, options, tail)
    if (tail === undefined) await started.#create()
    const { start, fencingToken } = stream
    if (options.renumber && fencingToken && start > 0) {
      // The record that set it may be one of those that no longer exist.
      await started.#add({ seqNum: started.#next++, timestamp: 0, ...fenceRecord(fencingToken) })
    }
    return started
  }

  async add(record: SequencedRecord): Promise<void> {
    if (!this.#options.renumber) return this.#add(record)
    // What it has trimmed is not in the export, and other records have got these numbers.
    if (record.command?.kind === 'trim') return
    return this.#add({ ...record, seqNum: this.#next++ })
  }

  async finish(): Promise<void> {
    const end = this.#options.renumber ? this.#next : this.#stream.tail.seqNum
    if (this.#nextOfTarget < end) throw this.#missing(end)
    if (this.#nextOfTarget > end) throw this.#different()
    await this.#verify(this.#stream.tail)
    await this.stop()
  }

  /** Appends what was added. The stream can be continued later. */
  async stop(): Promise<void> {
    await this.#flush()
    await this.#inFlight
  }

  async #create(): Promise<void> {
    const { canRestore } = this.#service
    const { start, tail, cipher, fencingToken, metadata, expiry, config } = this.#stream
    const about = streamLabel(this.#stream)
    if (config.timestamping.mode === 'arrival') {
      this.#warn(
        'takes the timestamps of clients from now on (client-prefer), so that its records keep theirs',
      )
    }
    if (tail.closed && start === tail.seqNum) {
      this.#warn('is open: the record that closed it no longer exists')
    }
    if (canRestore) {
      if (!this.#options.renumber) this.#end = start === tail.seqNum ? tail : { seqNum: start, timestamp: 0 }
      const { seqNum, timestamp } = this.#end
      const restored = { config: this.#config, cipher, fencingToken, metadata, expiry }
      await this.#service.restoreStream(this.#stream, { ...restored, start: { seqNum, timestamp } })
      return
    }
    if (start > 0 && !this.#options.renumber) {
      throw new TransferError(
        `${about} begins at sequence number ${start}, and streams of a server begin at 0; ` +
          'import it into a storage, or with `--renumber`',
      )
    }
    if (metadata !== undefined || expiry !== undefined) {
      this.#warn('is imported without its metadata and expiry: a server takes none')
    }
    const created = await this.#service.ensureStream(this.#stream, this.#config)
    if (created.cipher !== cipher) {
      const [actual, expected] = [created.cipher ?? 'none', cipher ?? 'none']
      throw new TransferError(
        `${about} has the cipher ${expected}, but its basin gives new streams ${actual}; ` +
          'import it into a storage, or change the basin',
      )
    }
  }

  #warn(problem: string): void {
    this.#options.onWarning?.(`${streamLabel(this.#stream)} ${problem}`)
  }

  /** The number of the next record that is appended. */
  get #nextOfTarget(): number {
    return this.#end.seqNum + this.#batch.length
  }

  /** The configuration of the export, except that records keep their timestamps. */
  get #config(): StreamConfig {
    const { config } = this.#stream
    if (config.timestamping.mode !== 'arrival') return config
    return { ...config, timestamping: { ...config.timestamping, mode: 'client-prefer' } }
  }

  async #add(record: SequencedRecord): Promise<void> {
    if (record.seqNum < this.#nextOfTarget) {
      this.#before = record
      return
    }
    if (record.seqNum > this.#nextOfTarget) throw this.#missing(record.seqNum)
    await this.#verify(record)
    const { headers, body } = record
    const sizes = {
      meteredBytes: meteredBytesOf(headers, body),
      encodedBytesMax: encodedBytesMaxOf(headers, body),
    }
    if (!this.#batchSize.hasRoomFor(sizes)) await this.#flush()
    this.#batch.push(record)
    this.#batchSize.add(sizes)
  }

  /** Appends the batch when the append before has completed. */
  async #flush(): Promise<void> {
    const records = this.#batch
    if (records.length === 0) return
    this.#batch = []
    this.#batchSize = new BatchSize()
    await this.#inFlight
    const { seqNum, timestamp } = records.at(-1)!
    this.#end = { seqNum: seqNum + 1, timestamp }
    this.appended += records.length
    this.#inFlight = this.#append(records)
    // Awaited before the next append.
    this.#inFlight.catch(() => {})
  }

  async #append(records: readonly SequencedRecord[]): Promise<void> {
    const keepTimes = await this.#service.append(this.#stream, records)
    if (keepTimes || this.#hasOtherTimes) return
    this.#hasOtherTimes = true
    this.#warn('has records with times in the future of the target, which get its time instead')
  }

  /**
   * Checks once, before the first append, that the last record of a continued stream is the one of the
   * export, and then gives the stream its configuration. That also fails with another key, which would leave
   * records under two keys. An export that begins at the tail has no such record, only the `next` position.
   */
  async #verify(next: { readonly timestamp: number }): Promise<void> {
    if (this.#isVerified) return
    const { seqNum, timestamp } = this.#end
    const before = this.#before
    // A time that was in the future of the target is smaller there.
    if (timestamp > (before ?? next).timestamp) throw this.#different()
    if (before !== undefined) {
      const read = await this.#service.read(this.#stream, seqNum - 1, 1)
      // It may have expired.
      const stored = 'records' in read ? read.records[0]! : before
      const isSame =
        before.seqNum === seqNum - 1 &&
        equalBytes(before.body, stored.body) &&
        equalHeaders(before.headers, stored.headers)
      if (!isSame) throw this.#different()
    }
    await this.#service.ensureStream(this.#stream, this.#config)
    this.#isVerified = true
  }

  #missing(seqNum: number): TransferError {
    return new TransferError(
      `${streamLabel(this.#stream)}: the records ${this.#nextOfTarget} to ${seqNum - 1} are missing; ` +
        'import it again with `--renumber`, or delete it first if it exists',
    )
  }

  #different(): TransferError {
    const { seqNum, timestamp } = this.#end
    return new TransferError(
      `${streamLabel(this.#stream)} ends at ${seqNum} with timestamp ${timestamp}: ` +
        'its records are not those of the export',
    )
  }
}
