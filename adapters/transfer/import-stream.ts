import type { SequencedRecord, StreamConfig, StreamPosition } from '../../src/index.ts'
import { isCommandShaped, parseCommand } from '../../src/model/command.ts'
import type { ExportedStream } from './export-entry.ts'
import { fillers, type Gap, isTrimmed } from './fillers.ts'
import { RecordBatch } from './record-batch.ts'
import { aboutStream, type Service } from './service.ts'
import { TransferError } from './transfer-error.ts'

/** Above, a gap is refused: filling it would take a service 100,000 requests. */
const GAP_POSITIONS_MAX = 100_000_000

export interface StreamTarget {
  readonly service: Service
  /** Makes the stream while new streams of its basin get its cipher. */
  readonly withCipher: (create: () => Promise<unknown>) => Promise<unknown>
  /** Whether the stream cannot exist, because its basin did not. */
  readonly isNew: boolean
  /** Whether to go on where the stream ends, when it has records. */
  readonly resume: boolean
}

/**
 * One stream on its way into a service: its records go to the positions that they had. As long as it is not complete it has a configuration of its own,
 * under which records keep their timestamps and nothing deletes it. One append is under way while the next batch is gathered.
 */
export class StreamImport {
  readonly #stream: ExportedStream
  readonly #target: StreamTarget
  readonly #batch = new RecordBatch()
  /** The tail of the target once everything that was handed over is stored. */
  #end: StreamPosition
  /** The last record of the export so far. */
  #last: SequencedRecord | undefined
  /** The fencing token of the target; undefined when it is not known. */
  #fencingToken: string | undefined
  #inFlight: Promise<void> = Promise.resolve()
  #isPrepared: boolean
  /** Whether it is still to be found out that the target holds the beginning of this stream. */
  #isUnproven: boolean

  private constructor(stream: ExportedStream, target: StreamTarget, existing: StreamPosition | undefined) {
    this.#stream = stream
    this.#target = target
    this.#end = existing ?? { seqNum: 0, timestamp: 0 }
    this.#isPrepared = existing === undefined
    this.#isUnproven = this.#end.seqNum > 0
    this.#fencingToken = this.#isUnproven ? undefined : ''
  }

  static async begin(stream: ExportedStream, target: StreamTarget): Promise<StreamImport> {
    const { service } = target
    const about = aboutStream(stream)
    if (stream.cipher !== null && !service.hasKey) {
      throw new TransferError(`${about} is encrypted, and there is no key for it`)
    }
    const existing = target.isNew ? undefined : await service.findStream(stream)
    if (existing !== undefined && existing.cipher !== stream.cipher) {
      throw new TransferError(`${about} exists with another cipher: ${existing.cipher ?? 'none'}`)
    }
    const tail = existing && (await service.tail(stream))
    if (tail !== undefined && tail.seqNum > 0 && !target.resume) {
      throw new TransferError(`${about} exists and has records: --resume goes on with it`)
    }
    if (tail !== undefined && tail.seqNum > stream.tail.seqNum) {
      throw new TransferError(`${about} has ${tail.seqNum} records already, more than are to be imported`)
    }
    const begun = new StreamImport(stream, target, tail)
    if (tail === undefined) await begun.#create()
    return begun
  }

  /** Takes records in the order of their positions, each above the one before. */
  async add(record: SequencedRecord): Promise<void> {
    this.#check(record)
    if (record.seqNum >= this.#end.seqNum) {
      this.#prove(record)
      if (!this.#batch.add(record)) {
        await this.#flush()
        this.#batch.add(record)
      }
    }
    this.#last = record
  }

  /** Resolves when the stream is complete, with the configuration that it had. */
  async finish(): Promise<void> {
    const { tail } = this.#stream
    await this.#flush()
    this.#prove(undefined)
    if (this.#end.seqNum < tail.seqNum) await this.#fill(tail.seqNum, tail.timestamp)
    await this.leave()
  }

  /** The same for one of which the rest is missing: it can be gone on with later. */
  async leave(): Promise<void> {
    await this.#flush()
    await this.#inFlight
    // What may be another stream of this name is left as it is.
    if (this.#isUnproven) return
    await this.#target.service.ensureStream(this.#stream, this.#stream.config)
  }

  /** To be called when nothing more comes of it. */
  abandon(): void {
    this.#inFlight.catch(() => {})
  }

  async #create(): Promise<void> {
    const { service, withCipher } = this.#target
    const { basin, name, start, tail, fencingToken } = this.#stream
    const { restoreStream } = service
    const config = provisional(this.#stream.config)
    if (restoreStream === undefined || (start === 0 && !fencingToken)) {
      await withCipher(() => service.ensureStream(this.#stream, config))
      return
    }
    const position = { seqNum: start, timestamp: start === tail.seqNum ? tail.timestamp : 0 }
    await withCipher(() => restoreStream({ basin, name }, { config, start: position, fencingToken }))
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
    if (!fits) throw new TransferError('the record does not fit the one before and the ends of its stream')
  }

  /** Before the first write to a stream that has records: whether its last one can be that of the export. */
  #prove(next: SequencedRecord | undefined): void {
    if (!this.#isUnproven) return
    this.#isUnproven = false
    const end = this.#end
    const before = this.#last
    const after = next ?? this.#stream.tail
    const isAtTail = end.seqNum === this.#stream.tail.seqNum
    const fits =
      before?.seqNum === end.seqNum - 1
        ? before.timestamp === end.timestamp
        : (before?.timestamp ?? 0) <= end.timestamp && end.timestamp <= after.timestamp
    if (fits && (!isAtTail || end.timestamp === this.#stream.tail.timestamp)) return
    throw new TransferError(
      `${aboutStream(this.#stream)} ends at ${end.seqNum} with timestamp ${end.timestamp}: those are not the records that are to be imported`,
    )
  }

  async #flush(): Promise<void> {
    const records = this.#batch.take()
    if (records.length === 0) return
    const first = records[0]!
    if (first.seqNum > this.#end.seqNum) await this.#fill(first.seqNum, this.#end.timestamp)
    await this.#append(records)
  }

  /** Waits for the append before this one, not for this one. */
  async #append(records: readonly SequencedRecord[]): Promise<void> {
    await this.#inFlight
    await this.#prepare()
    const last = records.at(-1)!
    this.#end = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
    for (const record of records) this.#fencingToken = tokenAfter(record) ?? this.#fencingToken
    this.#inFlight = this.#target.service.append(this.#stream, records)
    // It is awaited later.
    this.#inFlight.catch(() => {})
  }

  async #fill(to: number, lastTimestamp: number): Promise<void> {
    const from = this.#end
    const wanted = this.#stream.fencingToken
    const gap: Gap = {
      from,
      to,
      lastTimestamp,
      fencingToken: wanted === this.#fencingToken ? undefined : wanted,
      isLeading: to <= this.#stream.start,
    }
    if (to - from.seqNum > GAP_POSITIONS_MAX) {
      throw new TransferError(
        `${aboutStream(this.#stream)}: the records ${from.seqNum} to ${to - 1} are missing: too many to fill up. Import into a new directory instead`,
      )
    }
    if (!isTrimmed(gap))
      await this.#configure({ ...provisional(this.#stream.config), retentionPolicy: { ageSeconds: 1 } })
    for (const records of fillers(gap)) await this.#append(records)
    if (!isTrimmed(gap)) await this.#configure(provisional(this.#stream.config))
  }

  async #configure(config: StreamConfig): Promise<void> {
    await this.#inFlight
    await this.#target.service.ensureStream(this.#stream, config)
    this.#isPrepared = true
  }

  async #prepare(): Promise<void> {
    if (!this.#isPrepared) await this.#configure(provisional(this.#stream.config))
  }
}

/** Retention stays: it is fixed when a record is appended. */
function provisional(config: StreamConfig): StreamConfig {
  return {
    ...config,
    timestamping: { mode: 'client-require', uncapped: true },
    deleteOnEmpty: { minAgeSeconds: 0 },
  }
}

function tokenAfter({ headers, body }: SequencedRecord): string | undefined {
  if (!isCommandShaped(headers)) return undefined
  const command = parseCommand(headers[0]![1], body)
  return command.kind === 'fence' ? command.token : undefined
}
