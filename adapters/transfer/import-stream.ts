import type { SequencedRecord, StreamPosition } from '../../src/index.ts'
import { isCommandShaped, parseCommand } from '../../src/model/command.ts'
import type { ExportedStream } from './export-entry.ts'
import { fillers, type Gap, isTooNarrow, isTrimmed } from './fillers.ts'
import { HeldConfig } from './held-config.ts'
import { proveKey } from './prove-key.ts'
import { RecordBatch } from './record-batch.ts'
import { aboutStream, appendedByOthers, type Service } from './service.ts'
import { isConflict, TransferError } from './transfer-error.ts'

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
  readonly warn: (message: string) => void
}

/**
 * One stream on its way into a service: its records go to the positions that they had. As long as it is not complete it has a configuration of its own,
 * under which records keep their timestamps and nothing deletes it. One append is under way while the next batch is gathered.
 */
export class StreamImport {
  readonly #stream: ExportedStream
  readonly #target: StreamTarget
  readonly #config: HeldConfig
  readonly #batch = new RecordBatch()
  /** The tail of the target once everything that was handed over is stored. */
  #end: StreamPosition
  /** The last record of the export so far. */
  #last: SequencedRecord | undefined
  /** The record of the export that should be the last one of the target, which had some before. */
  #before: SequencedRecord | undefined
  /** The fencing token of the target; undefined when it is not known. */
  #fencingToken: string | undefined
  #inFlight: Promise<void> = Promise.resolve()
  #isPrepared: boolean
  /** Whether it is still to be found out that the target holds the beginning of this stream. */
  #isUnproven: boolean

  private constructor(stream: ExportedStream, target: StreamTarget, existing: StreamPosition | undefined) {
    this.#stream = stream
    this.#target = target
    this.#config = new HeldConfig(target.service, stream)
    this.#end = existing ?? { seqNum: 0, timestamp: 0 }
    this.#isPrepared = existing === undefined
    this.#isUnproven = this.#end.seqNum > 0
    this.#fencingToken = this.#isUnproven ? undefined : ''
  }

  static async begin(stream: ExportedStream, target: StreamTarget): Promise<StreamImport> {
    const { service } = target
    const about = aboutStream(stream)
    if (stream.cipher !== null && stream.tail.seqNum > 0 && !service.hasKey) {
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

  /** Resolves when the stream is complete, with the configuration that it had, and nobody came in between. */
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
    await this.#config.change(this.#stream.config)
    const tail = await this.#tail()
    if (tail < this.#end.seqNum) {
      throw new TransferError(
        `${aboutStream(this.#stream)} was deleted meanwhile: it ends at ${tail}, not at ${this.#end.seqNum}`,
      )
    }
  }

  /** To be called when nothing more comes of it. */
  abandon(): void {
    this.#inFlight.catch(() => {})
  }

  async #create(): Promise<void> {
    const { service, withCipher } = this.#target
    const { basin, name, cipher, start, tail, fencingToken } = this.#stream
    const { restoreStream } = service
    if (restoreStream === undefined) {
      await this.#config.create((config) => withCipher(() => service.ensureStream(this.#stream, config)))
      return
    }
    const position = { seqNum: start, timestamp: start === tail.seqNum ? tail.timestamp : 0 }
    await this.#config.create((config) =>
      restoreStream({ basin, name }, { config, cipher, start: position, fencingToken }),
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
    if (!fits) throw new TransferError('the record does not fit the one before and the ends of its stream')
  }

  /** Before the first write to a stream that has records: whether its last one can be that of the export. */
  #prove(next: SequencedRecord | undefined): void {
    if (!this.#isUnproven) return
    this.#isUnproven = false
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
    const gap: Gap = {
      from,
      to,
      lastTimestamp,
      fencingToken: await this.#tokenToSet(),
      isLeading: to <= this.#stream.start,
    }
    if (to - from.seqNum > GAP_POSITIONS_MAX) {
      throw new TransferError(
        `${aboutStream(this.#stream)}: the records ${from.seqNum} to ${to - 1} are missing: too many to fill up. Import into a new directory instead`,
      )
    }
    if (isTooNarrow(gap) && from.seqNum > 0) {
      throw new TransferError(
        `${aboutStream(this.#stream)}: position ${from.seqNum} cannot both set the fencing token and trim what is before it: delete the stream and import it anew`,
      )
    }
    if (isTrimmed(gap)) for (const records of fillers(gap)) await this.#append(records)
    else await this.#fillFleeting(gap)
  }

  /** Fills a gap with records that expire. */
  async #fillFleeting(gap: Gap): Promise<void> {
    await this.#prepare()
    await this.#inFlight
    // What somebody else appends must not expire with them.
    const tail = await this.#tail()
    if (tail !== gap.from.seqNum) throw appendedByOthers(this.#stream, tail, gap.from.seqNum)
    await this.#config.change(this.#config.fleeting)
    try {
      for (const records of fillers(gap)) await this.#append(records)
      await this.#inFlight
    } catch (error) {
      // Otherwise an append of unknown outcome could come after this.
      if (isConflict(error)) await this.#config.change(this.#config.provisional)
      throw error
    }
    await this.#config.change(this.#config.provisional)
  }

  /** The fencing token that the gap before the next record has to set; undefined when there is none, or the target has it. */
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

  /** Before the first write to a stream that existed. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return
    const { service, warn } = this.#target
    const isSealed = this.#stream.cipher !== null && this.#end.seqNum > 0
    if (isSealed) await proveKey(service, this.#stream, { end: this.#end, before: this.#before, warn })
    await this.#config.change(this.#config.provisional)
    this.#isPrepared = true
  }
}

function tokenAfter({ headers, body }: SequencedRecord): string | undefined {
  if (!isCommandShaped(headers)) return undefined
  const command = parseCommand(headers[0]![1], body)
  return command.kind === 'fence' ? command.token : undefined
}
