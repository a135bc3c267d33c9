import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'
import { matches } from './record.ts'

/** The most records that a live tail keeps. */
export const RECORDS_MAX = 100_000
/** The most metered bytes that a live tail keeps, unless a single record is larger. */
export const BYTES_MAX = 32 * 1_048_576

/**
 * The latest records of a stream, up to {@link RECORDS_MAX} and {@link BYTES_MAX}, and those of them that a
 * filter selects.
 */
export class RecordBuffer {
  #all = new Window()
  #selected = new Window()
  #needle = ''
  /** The filter has seen the records before this sequence number. */
  #scannedTo = 0
  /** How many records were received. */
  received = 0
  /** How many selected records were dropped since the last {@link clear}, which moves the others up. */
  dropped = 0

  get length(): number {
    return this.#shown.length
  }

  /** How many records are kept, selected or not. */
  get kept(): number {
    return this.#all.length
  }

  at(index: number): SequencedRecord | undefined {
    return this.#shown.at(index)
  }

  /** The position of a record among the selected ones; -1 if it is not one. */
  indexOf(seqNum: number): number {
    const index = this.#shown.lowerBound(seqNum)
    return this.#shown.at(index)?.seqNum === seqNum ? index : -1
  }

  add(records: readonly SequencedRecord[]): void {
    this.received += records.length
    for (const record of records) this.#all.push(record, meteredBytesOf(record.headers, record.body))
    const droppedOfAll = this.#all.shrink()
    const droppedOfSelected = this.#selected.dropBefore(this.#all.at(0)?.seqNum ?? 0)
    this.dropped += this.#needle === '' ? droppedOfAll : droppedOfSelected
  }

  /** Selects the records that contain a text, as far as {@link scan} gets; all of them if it is empty. */
  filter(text: string): void {
    this.#needle = text.toLowerCase()
    this.#selected = new Window()
    this.#scannedTo = 0
    this.dropped = 0
  }

  /**
   * Applies the filter to records that it has not seen, until `isDue` returns true. Returns whether it has
   * seen all of them.
   */
  scan(isDue: () => boolean = () => false): boolean {
    if (this.#needle === '') return true
    const count = this.#all.length
    for (let index = this.#all.lowerBound(this.#scannedTo); index < count; index++) {
      const record = this.#all.at(index)!
      if (matches(record, this.#needle)) this.#selected.push(record, 0)
      this.#scannedTo = record.seqNum + 1
      if (index % 64 === 63 && isDue()) return index === count - 1
    }
    return true
  }

  clear(): void {
    this.#all = new Window()
    this.#selected = new Window()
    this.#scannedTo = 0
    this.received = 0
    this.dropped = 0
  }

  get #shown(): Window {
    return this.#needle === '' ? this.#all : this.#selected
  }
}

/** A queue of records in the order of their sequence numbers. */
class Window {
  /** What was dropped is undefined. */
  #records: ({ readonly record: SequencedRecord; readonly bytes: number } | undefined)[] = []
  #start = 0
  #bytes = 0

  get length(): number {
    return this.#records.length - this.#start
  }

  at(index: number): SequencedRecord | undefined {
    return index < 0 ? undefined : this.#records[this.#start + index]?.record
  }

  push(record: SequencedRecord, bytes: number): void {
    this.#records.push({ record, bytes })
    this.#bytes += bytes
  }

  /** Drops the oldest records beyond the limits. Returns how many. */
  shrink(): number {
    let count = 0
    while (this.length > RECORDS_MAX || (this.#bytes > BYTES_MAX && this.length > 1)) {
      this.#shift()
      count++
    }
    return count
  }

  dropBefore(seqNum: number): number {
    let count = 0
    while (this.length > 0 && this.at(0)!.seqNum < seqNum) {
      this.#shift()
      count++
    }
    return count
  }

  /** The position of the first record at a sequence number or after it. */
  lowerBound(seqNum: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.at(middle)!.seqNum < seqNum) low = middle + 1
      else high = middle
    }
    return low
  }

  #shift(): void {
    this.#bytes -= this.#records[this.#start]!.bytes
    this.#records[this.#start++] = undefined
    // Removing each record from the array would move all others each time.
    if (this.#start > Math.max(100, this.length)) {
      this.#records = this.#records.slice(this.#start)
      this.#start = 0
    }
  }
}
