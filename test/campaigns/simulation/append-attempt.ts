import { type Command, closeRecord, fenceRecord, type RecordInput, trimRecord } from '../../../src/index.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import type { Header } from '../../../src/model/record.ts'
import type { StoredLog } from '../model/stream-history.ts'
import type { ModelAppend } from '../model/stream-state.ts'

/** A record of an append. */
export interface SentRecord {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  readonly timestamp: number | undefined
  readonly command: Command | undefined
}

export type AttemptStatus =
  | 'pending'
  | 'acknowledged'
  /** Certainly without effect, now and later. */
  | 'not made'
  /** Took effect once, may still, or never will. */
  | 'unknown'

/** Appends that take effect in order, and none of them after one that did not. */
export interface AttemptGroup {
  /**
   * The version of the stream from which on a deletion may end the group. A group keeps the incarnation that
   * its engine has cached, which on a shared storage may have been deleted by another engine long before: the
   * first append detects this.
   */
  readonly since: number
  readonly attempts: AppendAttempt[]
}

/** Where an append is stored. */
interface StoredPlace {
  readonly log: StoredLog
  readonly seqNum: number
}

type Request = Pick<AppendAttempt, 'id' | 'stream' | 'records' | 'conditions' | 'since'> &
  Partial<Pick<AppendAttempt, 'group' | 'turn'>>

/** An append and what is known about it: one call, or all calls with the same batch of a producer. */
export class AppendAttempt implements ModelAppend {
  /** Contained in its records, so that they can be recognized. */
  readonly id: string
  readonly stream: string
  readonly records: readonly SentRecord[]
  readonly conditions: AppendConditions
  /** The append session or producer, if any. */
  readonly group: AttemptGroup | undefined
  /** The caller whose single appends keep their order, and the position of this one among them. */
  readonly turn: { readonly caller: object; readonly number: number } | undefined
  /** The observed version of the stream at the first call. */
  readonly since: number
  /** Ordered by the incarnations of its stream. More than one only for the batch of a producer. */
  readonly places: StoredPlace[] = []
  /** The logs for which an ack said that the batch was not stored before. */
  readonly originals = new Set<StoredLog>()
  #calls = 0
  #pending = 0
  readonly #outcomes = new Set<AttemptStatus>()

  constructor({ id, stream, records, conditions, group, turn, since }: Request) {
    this.id = id
    this.stream = stream
    this.records = records
    this.conditions = conditions
    this.group = group
    this.turn = turn
    this.since = since
    group?.attempts.push(this)
  }

  get status(): AttemptStatus {
    if (this.#outcomes.has('acknowledged')) return 'acknowledged'
    if (this.#pending > 0) return 'pending'
    return this.#outcomes.has('unknown') ? 'unknown' : 'not made'
  }

  /** Whether there was one call only. */
  get isSingle(): boolean {
    return this.#calls === 1
  }

  /** The place in the latest incarnation that it is stored in. */
  get stored(): StoredPlace | undefined {
    return this.places.at(-1)
  }

  get count(): number {
    return this.records.length
  }

  get closes(): boolean {
    return this.records.at(-1)?.command?.kind === 'close'
  }

  get fence(): string | undefined {
    const command = this.records.findLast((record) => record.command?.kind === 'fence')?.command
    return command?.kind === 'fence' ? command.token : undefined
  }

  /** A call begins. */
  call(): void {
    this.#calls++
    this.#pending++
  }

  /** A call ends. */
  settle(outcome: Exclude<AttemptStatus, 'pending'>): void {
    this.#pending--
    this.#outcomes.add(outcome)
  }
}

/**
 * Returns the id of the append that a record belongs to: bodies begin with it and a dot, and it is the token
 * of a fence.
 */
export function attemptIdOf(body: Uint8Array): string | undefined {
  const beginning = new TextDecoder().decode(body.subarray(0, 16))
  return /^(a\d+)(\.|$)/.exec(beginning)?.[1]
}

/**
 * The id of an append that closes a stream and does nothing else: its record contains none. A stream has one
 * at a time that may still be stored.
 */
export function closeId(stream: string): string {
  return `close of ${stream}`
}

type Timestamp = SentRecord['timestamp']

export function dataRecord(id: string, index: number, timestamp: Timestamp, bytes = 0): SentRecord {
  const body = utf8(`${id}.${index}.`.padEnd(bytes, '*'))
  const headers: Header[] = index % 3 === 0 ? [[utf8('n'), utf8(id)]] : []
  return { headers, body, timestamp, command: undefined }
}

export function fenceOf(token: string, timestamp: Timestamp): SentRecord {
  return { ...fenceRecord(token), timestamp, command: { kind: 'fence', token } }
}

export function trimOf(seqNum: number, timestamp: Timestamp): SentRecord {
  return { ...trimRecord(seqNum), timestamp, command: { kind: 'trim', seqNum } }
}

export function closeOf(timestamp: Timestamp): SentRecord {
  return { ...closeRecord(), body: utf8(''), timestamp, command: { kind: 'close' } }
}

export function inputOf({ headers, body, timestamp }: SentRecord): RecordInput {
  return { headers, body, timestamp }
}
