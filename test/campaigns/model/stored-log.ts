import type { SequencedRecord } from '../../../src/index.ts'

/** A record that was found in the storage. It stays part of the log even after it is freed. */
export interface StoredRecord extends SequencedRecord {
  readonly expiresAt: number | null
  /** When it expires if a longer retention applies to it. At or after `expiresAt`. */
  extendedTo: number | null
  /** Whether it had expired by some clock before it was extended, so that it may be freed. */
  mayBeFreed: boolean
  /** Whether the storage has freed it. */
  isFreed: boolean
}

/** One incarnation of a stream: every record that it ever had, by sequence number. */
export class StoredLog {
  readonly id: string
  readonly records: StoredRecord[] = []
  trimPoint = 0

  constructor(id: string) {
    this.id = id
  }

  get timestamp(): number {
    return this.records.at(-1)?.timestamp ?? 0
  }

  add(record: SequencedRecord, expiresAt: number | null): void {
    this.records.push({ ...record, expiresAt, extendedTo: expiresAt, mayBeFreed: false, isFreed: false })
  }
}

/** Everything that a record has, as text. */
export function textOfRecord({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  return [seqNum, timestamp, ...headers.flat(), body].map((part) => textOf(part)).join(' ')
}

export function textOf(part: Uint8Array | number): string {
  return typeof part === 'number' ? String(part) : Buffer.from(part).toString()
}
