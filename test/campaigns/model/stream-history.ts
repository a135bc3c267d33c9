import type { SequencedRecord } from '../../../src/index.ts'
import type { StreamConfig } from '../../../src/model/config.ts'
import type { StreamDocument } from '../../../src/storage/documents.ts'
import { Violation } from '../harness/violation.ts'
import { EMPTY_STREAM, type StreamState } from './stream-state.ts'

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

/** The state of a stream at one time. */
export interface Moment {
  readonly version: number
  /** When it appeared, in virtual time. */
  readonly at: number
  /** Undefined while no stream has this name. */
  readonly log: StoredLog | undefined
  readonly config: StreamConfig | undefined
  readonly epoch: number
  readonly state: StreamState
  readonly tailTimestamp: number
  readonly trimPoint: number
  /** The time of the trim that set the trim point. */
  readonly trimmedAt: number
  /** The time of the last append; 0 if there was none. */
  readonly appendedAt: number
  /** The time of the last write: an append, or the creation of the stream. */
  readonly writtenAt: number
}

const MISSING: Omit<Moment, 'version' | 'at'> = {
  log: undefined,
  config: undefined,
  epoch: 0,
  state: EMPTY_STREAM,
  tailTimestamp: 0,
  trimPoint: 0,
  trimmedAt: 0,
  appendedAt: 0,
  writtenAt: 0,
}

/**
 * The changes of a stream in the order in which they appeared in the storage. An operation takes effect
 * between its call and its return, so its outcome must be true of a moment between the last one observed
 * before the call and the one at its return.
 */
export class StreamHistory {
  readonly name: string
  readonly moments: Moment[] = [{ version: 0, at: 0, ...MISSING }]
  /**
   * The latest versions observed by calls that have returned, of the records and of the configuration, which
   * is a separate object.
   */
  readonly observed = { records: 0, config: 0 }
  /** What is stored under its name, which may be reserved for forks only. */
  document: StreamDocument | undefined
  /** Whether an incarnation of the stream was deleted. */
  wasDeleted = false
  /** Deletions that were requested and may still happen. */
  readonly deletions = new Set<object>()

  constructor(name: string) {
    this.name = name
  }

  get now(): Moment {
    return this.moments.at(-1)!
  }

  add(at: number, change: Partial<Omit<Moment, 'version' | 'at'>>): void {
    this.moments.push({ ...this.now, ...change, at, version: this.moments.length })
  }

  remove(at: number): void {
    this.wasDeleted = true
    this.add(at, MISSING)
  }

  /** The moment at which a record appeared. */
  momentOf(log: StoredLog, seqNum: number): Moment {
    return this.moments.find((moment) => moment.log === log && moment.state.tail > seqNum)!
  }

  /**
   * Marks the first moment since a version that nothing contradicts as observed: from now on, no call may
   * observe an earlier one. `contradiction` returns a clause. Throws if every moment is contradicted.
   */
  observe(
    kind: 'records' | 'config',
    since: number,
    [expected, found]: readonly [expected: string, found: string],
    contradiction: (moment: Moment) => string | undefined,
  ): void {
    const contradictions: string[] = []
    for (const moment of this.moments.slice(since)) {
      const problem = contradiction(moment)
      if (problem === undefined) {
        this.markObserved(kind, moment)
        return
      }
      contradictions.push(`at version ${moment.version} of \`${this.name}\`: ${problem}`)
    }
    throw new Violation(
      `${expected}, at some moment of the call`,
      `${found}; ${contradictions.slice(-8).join('; ')}`,
    )
  }

  markObserved(kind: 'records' | 'config', { log, version }: Moment): void {
    this.observed[kind] = Math.max(this.observed[kind], version)
    // Records also prove that their stream exists.
    const first = log === undefined ? version : this.moments.find((moment) => moment.log === log)!.version
    this.observed.config = Math.max(this.observed.config, first)
  }
}
