import type { SequencedRecord } from '../../src/index.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import type { ExportCounts, ExportEntry, ExportedStream, StreamEnd } from './export-entry.ts'
import { streamLabel, TransferError } from './service.ts'

/**
 * How far an export goes, whether it is being written or read. Checks that each entry may follow those before
 * it.
 */
export class ExportProgress {
  #isBegun = false
  #basin: string | undefined
  /** The last stream of the basin, complete or not. */
  #lastStream: string | undefined
  /** The stream that has not ended. */
  stream: ExportedStream | undefined
  /** The lowest sequence number of the next record of that stream. */
  nextSeqNum = 0
  #timestamp = 0
  records = 0
  isComplete = false
  /** Records are counted at the end of their stream. */
  readonly counts = { basins: 0, streams: 0, records: 0 }

  /** @throws TransferError */
  add(entry: ExportEntry): void {
    if (this.isComplete) throw new TransferError('unexpected line after the end of the export')
    if ((entry.kind === 'header') !== !this.#isBegun) {
      throw new TransferError('an export must begin with its header')
    }
    const isOfStream = entry.kind === 'record' || entry.kind === 'stream-end'
    if (isOfStream !== (this.stream !== undefined)) {
      throw new TransferError(
        isOfStream ? 'unexpected line outside a stream' : 'the previous stream has no end',
      )
    }
    switch (entry.kind) {
      case 'header':
        this.#isBegun = true
        return
      case 'basin':
        this.#beginBasin(entry.name)
        return
      case 'stream':
        this.#beginStream(entry.stream)
        return
      case 'record':
        this.#addRecord(entry.record, this.stream!)
        return
      case 'stream-end':
        this.#endStream(entry, this.stream!)
        return
      case 'end':
        if (!sameCounts(entry.counts, this.counts)) {
          throw new TransferError('the export has other counts than its last line: parts are missing')
        }
        this.isComplete = true
    }
  }

  #beginBasin(name: string): void {
    if (this.#basin !== undefined && compareUtf8(name, this.#basin) <= 0) {
      throw new TransferError('basins must be unique and in the order of their names')
    }
    this.#basin = name
    this.#lastStream = undefined
    this.counts.basins++
  }

  #beginStream(stream: ExportedStream): void {
    if (stream.basin !== this.#basin) throw new TransferError('a stream must follow its basin')
    if (this.#lastStream !== undefined && compareUtf8(stream.name, this.#lastStream) <= 0) {
      throw new TransferError('streams must be unique and in the order of their names')
    }
    this.stream = stream
    this.#lastStream = stream.name
    this.nextSeqNum = stream.start
    this.#timestamp = 0
  }

  #addRecord({ seqNum, timestamp }: SequencedRecord, stream: ExportedStream): void {
    const { tail } = stream
    const isInOrder = seqNum >= this.nextSeqNum && timestamp >= this.#timestamp
    const isLast = seqNum === tail.seqNum - 1
    const isBelowTail = isLast ? timestamp === tail.timestamp : timestamp <= tail.timestamp
    if (!isInOrder || seqNum >= tail.seqNum || !isBelowTail) {
      const label = `${streamLabel(stream)}: the record ${seqNum}`
      throw new TransferError(`${label} is out of order or outside the bounds of the stream`)
    }
    this.nextSeqNum = seqNum + 1
    this.#timestamp = timestamp
    this.records++
  }

  #endStream({ name, records }: StreamEnd, stream: ExportedStream): void {
    if (name !== stream.name) throw new TransferError('the line ends another stream')
    if (records !== this.records) {
      throw new TransferError(`${streamLabel(stream)} has ${this.records} records, not ${records}`)
    }
    this.stream = undefined
    this.records = 0
    this.counts.streams++
    this.counts.records += records
  }
}

function sameCounts(a: ExportCounts, b: ExportCounts): boolean {
  return a.basins === b.basins && a.streams === b.streams && a.records === b.records
}
