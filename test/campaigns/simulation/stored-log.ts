import type { SequencedRecord } from '../../../src/index.ts'
import type { CreationRequest } from './creation-request.ts'

/** A record that was found in the storage. It stays part of the log even after it is freed. */
export interface StoredRecord extends SequencedRecord {
  readonly meteredBytes: number
  /** The token that it sets if it is a \`fence\` command. */
  readonly fence: string | undefined
  readonly expiresAt: number | null
  /** When it expires if a longer retention applies to it. At or after `expiresAt`. */
  extendedTo: number | null
  /** The end of the append that it belongs to. */
  readonly appendEnd: number
  /** Whether it had expired by some clock before it was extended, so that it may be freed. */
  mayBeFreed: boolean
  /** Whether the storage has freed it. */
  isFreed: boolean
}

/** One incarnation of a stream: its records from 0 on, by sequence number. */
export class StoredLog {
  readonly id: string
  /** The request that created the stream with more than a configuration. */
  creation: CreationRequest | undefined
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
