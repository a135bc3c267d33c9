import type { SequencedRecord, StreamPosition } from '../../src/index.ts'
import { BatchSize } from '../../src/model/append-input.ts'
import { encodedBytesMaxOf, isCommandShaped, meteredBytesOf, parseCommand } from '../../src/model/record.ts'
import type { ExportedStream } from './export-entry.ts'
import { type Gap, gapRecords, isTooNarrow, isTrimmed } from './gap-records.ts'
import { ImportConfig } from './import-config.ts'
import { concurrentAppend, type Service, streamLabel } from './service.ts'
import { isConflict, TransferError } from './transfer-error.ts'
import { verifyKey } from './verify-key.ts'

/** Filling a larger gap would take more than 100,000 requests. */
const GAP_POSITIONS_MAX = 100_000_000

export interface ImportTarget {
  readonly service: Service
  /** Runs `create` while the basin gives new streams the cipher of this one. */
  readonly withCipher: (create: () => Promise<unknown>) => Promise<unknown>
  /** Whether the basin is new, so that the stream cannot exist. */
  readonly isNew: boolean
  /** Continues at the tail of a stream that has records. */
  readonly resume: boolean
  readonly warn: (message: string) => void
}

/**
 * Imports one stream: its records get their original positions. Until it is complete, the stream has a
 * temporary configuration ({@link ImportConfig}). One append is in flight while the next batch is collected.
 */
export class StreamImport {
  readonly #stream: ExportedStream
  readonly #target: ImportTarget
  readonly #config: ImportConfig
  readonly #batch = new RecordBatch()
  /** The tail of the target when the append in flight has completed. */
  #end: StreamPosition
  /** The last record that was read. */
  #last: SequencedRecord | undefined
  /** The record of the export that must equal the last record of a continued stream. */
  #before: SequencedRecord | undefined
  /** The fencing token of the target; undefined if unknown. */
  #fencingToken: string | undefined
  #inFlight: Promise<void> = Promise.resolve()
  #isPrepared: boolean
  /** Whether a continued stream is known to contain the beginning of the exported one. */
  #isVerified: boolean

  private constructor(stream: ExportedStream, target: ImportTarget, existing: StreamPosition | undefined) {
    this.#stream = stream
    this.#target = target
    this.#config = new ImportConfig(target.service, stream)
    this.#end = existing ?? { seqNum: 0, timestamp: 0 }
    this.#isPrepared = existing === undefined
    this.#isVerified = this.#end.seqNum === 0
    this.#fencingToken = this.#isVerified ? '' : undefined
  }

  static async begin(stream: ExportedStream, target: ImportTarget): Promise<StreamImport> {
    const { service } = target
    const about = streamLabel(stream)
    if (stream.cipher !== null && stream.tail.seqNum > 0 && !service.hasKey) {
      throw new TransferError(`${about} is encrypted; a key is required`)
    }
    const existing = target.isNew ? undefined : await service.findStream(stream)
    if (existing !== undefined && existing.cipher !== stream.cipher) {
      throw new TransferError(`${about} already exists with another cipher: ${existing.cipher ?? 'none'}`)
    }
    const tail = existing && (await service.tail(stream))
    if (tail !== undefined && tail.seqNum > 0 && !target.resume) {
      throw new TransferError(`${about} already has records; continue it with \`--resume\``)
    }
    if (tail !== undefined && tail.seqNum > stream.tail.seqNum) {
      throw new TransferError(
        `${about} already ends at ${tail.seqNum}, after the exported tail ${stream.tail.seqNum}`,
      )
    }
    const started = new StreamImport(stream, target, tail)
    if (tail === undefined) await started.#create()
    return started
  }

  /** Adds the next record. Sequence numbers must increase. */
  async add(record: SequencedRecord): Promise<void> {
    this.#check(record)
    if (record.seqNum >= this.#end.seqNum) {
      this.#verifyTail(record)
      if (!this.#batch.add(record)) {
        await this.#flush()
        this.#batch.add(record)
      }
    }
    this.#last = record
  }

  /** Completes the stream and sets its final configuration. Rejects if another client changed it. */
  async finish(): Promise<void> {
    const { tail } = this.#stream
    await this.#flush()
    this.#verifyTail(undefined)
    if (this.#end.seqNum < tail.seqNum) await this.#fill(tail.seqNum, tail.timestamp)
    await this.leave()
  }

  /**
   * Sets the final configuration of a stream whose remaining records are missing. It can be continued later.
   */
  async leave(): Promise<void> {
    await this.#flush()
    await this.#inFlight
    // It may be another stream with this name: leave it unchanged.
    if (!this.#isVerified) return
    await this.#config.change(this.#stream.config)
    const { seqNum, closed } = (await this.#target.service.tail(this.#stream)) ?? { seqNum: 0 }
    if (seqNum < this.#end.seqNum) {
      throw new TransferError(
        `${streamLabel(this.#stream)} was deleted during the import: it ends at ${seqNum}, not at ${this.#end.seqNum}`,
      )
    }
    const isComplete = seqNum === this.#stream.tail.seqNum
    if (isComplete && this.#stream.tail.closed && !closed) {
      this.#target.warn(`${streamLabel(this.#stream)} is open: the record that closed it no longer exists`)
    }
  }

  /** Ignores the append in flight after a failure. */
  abandon(): void {
    this.#inFlight.catch(() => {})
  }

  async #create(): Promise<void> {
    const { service, withCipher, warn } = this.#target
    const { basin, name, cipher, start, tail, fencingToken, metadata, expiry } = this.#stream
    const { restoreStream } = service
    if (restoreStream === undefined) {
      if (metadata !== undefined || expiry !== undefined) {
        warn(`${streamLabel(this.#stream)} is imported without its metadata and expiry: a server takes none`)
      }
      await this.#config.create((config) => withCipher(() => service.ensureStream(this.#stream, config)))
      return
    }
    const position = { seqNum: start, timestamp: start === tail.seqNum ? tail.timestamp : 0 }
    await this.#config.create((config) =>
      restoreStream({ basin, name }, { config, cipher, start: position, fencingToken, metadata, expiry }),
    )
    this.#end = position
    this.#fencingToken = fencingToken ?? ''
  }

  #check(record: SequencedRecord): void {
    const { start, tail } = this.#stream
    const last = this.#last
    const fits =
      record.seqNum >= (last === undefined ? start : last.seqNum + 1) &&
      record.seqNum < tail.seqNum &&
      record.timestamp >= (last?.timestamp ?? 0) &&
      record.timestamp <= tail.timestamp &&
      (record.seqNum < tail.seqNum - 1 || record.timestamp === tail.timestamp)
    if (!fits) throw new TransferError('the record is out of order or outside the bounds of its stream')
  }

  /** Checks, before the first append to a continued stream, that its tail is a position of the export. */
  #verifyTail(next: SequencedRecord | undefined): void {
    if (this.#isVerified) return
    this.#isVerified = true
    const end = this.#end
    const before = this.#last
    if (before?.seqNum === end.seqNum - 1) this.#before = before
    const after = next ?? this.#stream.tail
    const isAtTail = end.seqNum === this.#stream.tail.seqNum
    const fits =
      before?.seqNum === end.seqNum - 1
        ? before.timestamp === end.timestamp
        : (before?.timestamp ?? 0) <= end.timestamp && end.timestamp <= after.timestamp
    if (fits && (!isAtTail || end.timestamp === this.#stream.tail.timestamp)) return
    throw new TransferError(
      `${streamLabel(this.#stream)} ends at ${end.seqNum} with timestamp ${end.timestamp}: ` +
        'its records are not those of the export',
    )
  }

  async #flush(): Promise<void> {
    const records = this.#batch.take()
    if (records.length === 0) return
    const first = records[0]!
    if (first.seqNum > this.#end.seqNum) await this.#fill(first.seqNum, this.#end.timestamp)
    await this.#append(records)
  }

  /** Waits for the previous append, not for this one. */
  async #append(records: readonly SequencedRecord[]): Promise<void> {
    await this.#inFlight
    await this.#prepare()
    const last = records.at(-1)!
    this.#end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    for (const record of records) this.#fencingToken = tokenAfter(record) ?? this.#fencingToken
    this.#inFlight = this.#target.service.append(this.#stream, records)
    // Awaited before the next append.
    this.#inFlight.catch(() => {})
  }

  async #fill(to: number, lastTimestamp: number): Promise<void> {
    const from = this.#end
    const gap: Gap = {
      from,
      to,
      lastTimestamp,
      fencingToken: await this.#tokenToSet(),
      isLeading: to <= this.#stream.start,
    }
    if (to - from.seqNum > GAP_POSITIONS_MAX) {
      throw new TransferError(
        `${streamLabel(this.#stream)}: the records ${from.seqNum} to ${to - 1} are missing, ` +
          'which is too many to fill; import into a new directory',
      )
    }
    if (isTooNarrow(gap) && from.seqNum > 0) {
      throw new TransferError(
        `${streamLabel(this.#stream)}: position ${from.seqNum} cannot contain both a fence and a trim; ` +
          'delete the stream and import it again',
      )
    }
    if (isTrimmed(gap)) for (const records of gapRecords(gap)) await this.#append(records)
    else await this.#fillExpiring(gap)
  }

  /** Fills a gap with records that expire after a second. */
  async #fillExpiring(gap: Gap): Promise<void> {
    await this.#prepare()
    await this.#inFlight
    // Records that others append must not expire as well.
    const tail = await this.#tail()
    if (tail !== gap.from.seqNum) throw concurrentAppend(this.#stream, tail, gap.from.seqNum)
    await this.#config.change(this.#config.expiring)
    try {
      for (const records of gapRecords(gap)) await this.#append(records)
      await this.#inFlight
    } catch (error) {
      // After any other error the outcome of the append is unknown: it may still arrive, and must then
      // expire.
      if (isConflict(error)) await this.#config.change(this.#config.importing)
      throw error
    }
    await this.#config.change(this.#config.importing)
  }

  /** The fencing token that a gap must set; undefined if there is none or the target already has it. */
  async #tokenToSet(): Promise<string | undefined> {
    const wanted = this.#stream.fencingToken
    if (wanted === undefined) return undefined
    if (this.#fencingToken === undefined) {
      await this.#inFlight
      this.#fencingToken = await this.#target.service.fencingToken(this.#stream)
    }
    return wanted === this.#fencingToken ? undefined : wanted
  }

  async #tail(): Promise<number> {
    return (await this.#target.service.tail(this.#stream))?.seqNum ?? 0
  }

  /** Prepares an existing stream for the first append. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return
    const { service, warn } = this.#target
    const isSealed = this.#stream.cipher !== null && this.#end.seqNum > 0
    if (isSealed) await verifyKey(service, this.#stream, { end: this.#end, before: this.#before, warn })
    await this.#config.change(this.#config.importing)
    this.#isPrepared = true
  }
}

function tokenAfter({ headers, body }: SequencedRecord): string | undefined {
  if (!isCommandShaped(headers)) return undefined
  const command = parseCommand(headers[0]![1], body)
  return command.kind === 'fence' ? command.token : undefined
}

/** Collects consecutive records for one append. */
class RecordBatch {
  #records: SequencedRecord[] = []
  #size = new BatchSize()

  /** Returns false if the record does not follow the last one or exceeds the limits of a batch. */
  add(record: SequencedRecord): boolean {
    const { headers, body } = record
    const sizes = {
      meteredBytes: meteredBytesOf(headers, body),
      encodedBytesMax: encodedBytesMaxOf(headers, body),
    }
    const last = this.#records.at(-1)
    const follows = last === undefined || record.seqNum === last.seqNum + 1
    if (!follows || !this.#size.hasRoomFor(sizes)) return false
    this.#records.push(record)
    this.#size.add(sizes)
    return true
  }

  /** Removes and returns the records. */
  take(): readonly SequencedRecord[] {
    const records = this.#records
    this.#records = []
    this.#size = new BatchSize()
    return records
  }
}
