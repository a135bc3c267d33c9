import type { SequencedRecord } from '../../src/index.ts'

/** A record that was seen in the storage. What a log once held it holds for ever, but for what is freed. */
export interface StoredRecord extends SequencedRecord {
  readonly meteredBytes: number
  readonly expiresAt: number | null
  /** Where the append that brought it ends. */
  readonly appendEnd: number
  /** The storage holds it no more. */
  isFreed: boolean
}

/** One incarnation of a stream: its records from 0 on, by sequence number. */
export class StoredLog {
  readonly id: string
  readonly records: StoredRecord[] = []
  /** The number of the last single append of each caller. */
  readonly lastTurn = new Map<object, number>()

  constructor(id: string) {
    this.id = id
  }

  get timestamp(): number {
    return this.records.at(-1)?.timestamp ?? 0
  }
}
