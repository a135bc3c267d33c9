import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'

/** The most records that a window holds. */
const RECORDS_MAX = 20_000
/** The most metered bytes that a window holds, unless a single record is larger. */
const BYTES_MAX = 32 * 1_048_576

interface Entry {
  readonly record: SequencedRecord
  readonly bytes: number
  /** Whether the filter selects it; undefined until it has seen it. */
  isSelected: boolean | undefined
}

type Filter = (record: SequencedRecord) => boolean

/**
 * Records in the order of their sequence numbers, up to {@link RECORDS_MAX} and {@link BYTES_MAX}: it grows
 * at both ends, and what exceeds the limits is dropped at the other one. A filter selects those that are
 * shown.
 */
export class RecordWindow {
  #entries: Entry[] = []
  #shown: Entry[] = []
  #bytes = 0
  #filter: Filter | undefined

  /** How many records are selected. */
  get length(): number {
    return this.#shown.length
  }

  /** How many records are held, selected or not. */
  get held(): number {
    return this.#entries.length
  }

  /** Whether records can be added without dropping others. */
  hasRoomFor(records: readonly SequencedRecord[]): boolean {
    const bytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), this.#bytes)
    return this.held + records.length <= RECORDS_MAX && bytes <= BYTES_MAX
  }

  /** The first sequence number that is held; undefined if there is none. */
  get first(): number | undefined {
    return this.#entries[0]?.record.seqNum
  }

  /** The sequence number after the last one that is held; undefined if there is none. */
  get end(): number | undefined {
    const last = this.#entries.at(-1)
    return last && last.record.seqNum + 1
  }

  /** A selected record. */
  at(index: number): SequencedRecord | undefined {
    return this.#shown[index]?.record
  }

  /** The selected records. */
  records(): SequencedRecord[] {
    return this.#shown.map(({ record }) => record)
  }

  /** The position of the first selected record at a sequence number or after it. */
  lowerBound(seqNum: number): number {
    let low = 0
    let high = this.#shown.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#shown[middle]!.record.seqNum < seqNum) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The position of a record among the selected ones; -1 if it is not one. */
  indexOf(seqNum: number): number {
    const index = this.lowerBound(seqNum)
    return this.at(index)?.seqNum === seqNum ? index : -1
  }

  /** Adds later records. */
  append(records: readonly SequencedRecord[]): void {
    for (const entry of this.#entriesOf(records)) this.#entries.push(entry)
    let count = 0
    while (this.#exceeds(count)) this.#bytes -= this.#entries[count++]!.bytes
    this.#entries.splice(0, count)
  }

  /** Adds earlier records. Returns whether later ones were dropped. */
  prepend(records: readonly SequencedRecord[]): boolean {
    this.#entries = [...this.#entriesOf(records), ...this.#entries]
    let count = 0
    while (this.#exceeds(count)) this.#bytes -= this.#entries[this.held - ++count]!.bytes
    this.#entries.length -= count
    return count > 0
  }

  /** Selects the records that a filter returns true for, as far as {@link scan} gets. */
  filter(filter: Filter | undefined): void {
    this.#filter = filter
    for (const entry of this.#entries) entry.isSelected = undefined
  }

  /**
   * Applies the filter to records that it has not seen, until `isDue` returns true. Returns whether it has
   * seen all of them.
   */
  scan(isDue: () => boolean = () => false): boolean {
    let seen = 0
    let isDone = true
    for (const entry of this.#entries) {
      if (entry.isSelected !== undefined) continue
      if (++seen % 64 === 0 && isDue()) {
        isDone = false
        break
      }
      entry.isSelected = this.#filter?.(entry.record) ?? true
    }
    this.#shown = this.#entries.filter(({ isSelected }) => isSelected === true)
    return isDone
  }

  clear(): void {
    this.#entries = []
    this.#shown = []
    this.#bytes = 0
  }

  #entriesOf(records: readonly SequencedRecord[]): Entry[] {
    return records.map((record) => {
      const bytes = meteredBytesOf(record.headers, record.body)
      this.#bytes += bytes
      return { record, bytes, isSelected: undefined }
    })
  }

  /** Whether what is left after dropping some is still too much. One record is held in any case. */
  #exceeds(dropped: number): boolean {
    const left = this.held - dropped
    return left > RECORDS_MAX || (this.#bytes > BYTES_MAX && left > 1)
  }
}
