import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'

/** The most records that a window holds. */
const RECORDS_MAX = 5000
/** The most metered bytes that a window holds, unless a single record is larger. */
const BYTES_MAX = 32 * 1_048_576

type Filter = (record: SequencedRecord) => boolean

/**
 * Records in the order of their sequence numbers, up to {@link RECORDS_MAX} and {@link BYTES_MAX}: it grows
 * at both ends, and what exceeds the limits is dropped at the other one. A filter selects those that are
 * shown.
 */
export class RecordWindow {
  #held: readonly SequencedRecord[] = []
  #shown: readonly SequencedRecord[] = []
  #bytes = 0
  #selects: Filter = () => true

  /** The selected records. */
  get shown(): readonly SequencedRecord[] {
    return this.#shown
  }

  /** How many records are held, selected or not. */
  get held(): number {
    return this.#held.length
  }

  /** Whether records can be added without dropping others. */
  hasRoomFor(records: readonly SequencedRecord[]): boolean {
    return this.held + records.length <= RECORDS_MAX && this.#bytes + bytesOf(records) <= BYTES_MAX
  }

  /** The first sequence number that is held; undefined if there is none. */
  get first(): number | undefined {
    return this.#held[0]?.seqNum
  }

  /** The sequence number after the last one that is held; undefined if there is none. */
  get end(): number | undefined {
    const last = this.#held.at(-1)
    return last && last.seqNum + 1
  }

  /** The position of a record among the selected ones; -1 if it is not one. */
  indexOf(seqNum: number | undefined): number {
    return this.#shown.findIndex((record) => record.seqNum === seqNum)
  }

  /** Adds later records. */
  append(records: readonly SequencedRecord[]): void {
    this.#held = [...this.#held, ...records]
    this.#bytes += bytesOf(records)
    let count = 0
    while (this.#exceeds(count)) this.#bytes -= bytesOf([this.#held[count++]!])
    this.#held = this.#held.slice(count)
    const first = this.first ?? 0
    const shown = [...this.#shown, ...records.filter(this.#selects)]
    this.#shown = shown.filter(({ seqNum }) => seqNum >= first)
  }

  /** Adds earlier records. Returns whether later ones were dropped. */
  prepend(records: readonly SequencedRecord[]): boolean {
    this.#held = [...records, ...this.#held]
    this.#bytes += bytesOf(records)
    let count = 0
    while (this.#exceeds(count)) this.#bytes -= bytesOf([this.#held[this.held - ++count]!])
    this.#held = this.#held.slice(0, this.held - count)
    const end = this.end ?? 0
    const shown = [...records.filter(this.#selects), ...this.#shown]
    this.#shown = shown.filter(({ seqNum }) => seqNum < end)
    return count > 0
  }

  /** Selects the records that a filter returns true for; all of them if there is none. */
  filter(selects: Filter = () => true): void {
    this.#selects = selects
    this.#shown = this.#held.filter(selects)
  }

  clear(): void {
    this.#held = []
    this.#shown = []
    this.#bytes = 0
  }

  /** Whether what is left after dropping some is still too much. One record is held in any case. */
  #exceeds(dropped: number): boolean {
    const left = this.held - dropped
    return left > RECORDS_MAX || (this.#bytes > BYTES_MAX && left > 1)
  }
}

function bytesOf(records: readonly SequencedRecord[]): number {
  return records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
}
