import { type Command, closeRecord, fenceRecord, type RecordInput, trimRecord } from '../../../src/index.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { type Header, meteredBytesOf } from '../../../src/model/record.ts'
import type { Append } from '../linearizability/operations.ts'
import type { ClockWindow } from './engine-clock.ts'
import type { StoredLog } from './stored-log.ts'

/** A record of an append. */
export interface SentRecord {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
  readonly timestamp: number | undefined
  readonly meteredBytes: number
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
export interface StoredPlace {
  readonly log: StoredLog
  readonly seqNum: number
}

/** An append and what is known about it: one call, or all calls with the same batch of a producer. */
export class AppendAttempt {
  /** Contained in its records, so that they can be recognized. */
  readonly id: string
  readonly stream: string
  readonly records: readonly SentRecord[]
  readonly conditions: AppendConditions
  /** The append session or producer, if any. */
  readonly group: AttemptGroup | undefined
  /** The caller whose single appends keep their order, and the position of this one among them. */
  readonly turn: { readonly caller: object; readonly number: number } | undefined
  /** The observed version of the stream at the call. */
  readonly since: number
  /** The clocks of the engines during the calls. */
  readonly clocks: ClockWindow[] = []
  /** In the order of the incarnations of its stream. More than one only for the batch of a producer. */
  readonly places: StoredPlace[] = []
  /** The logs for which an ack said that the batch was not stored before. */
  readonly originals = new Set<StoredLog>()
  #calls = 0
  #pending = 0
  #isAcknowledged = false
  #isUnknown = false

  constructor(
    attempt: Pick<AppendAttempt, 'id' | 'stream' | 'records' | 'conditions' | 'group' | 'turn' | 'since'>,
  ) {
    this.id = attempt.id
    this.stream = attempt.stream
    this.records = attempt.records
    this.conditions = attempt.conditions
    this.group = attempt.group
    this.turn = attempt.turn
    this.since = attempt.since
    this.group?.attempts.push(this)
  }

  get status(): AttemptStatus {
    if (this.#isAcknowledged) return 'acknowledged'
    if (this.#pending > 0) return 'pending'
    return this.#isUnknown ? 'unknown' : 'not made'
  }

  /** Whether there was one call only. */
  get isSingle(): boolean {
    return this.#calls === 1
  }

  /** The place in the latest incarnation that it is stored in. */
  get stored(): StoredPlace | undefined {
    return this.places.at(-1)
  }

  get closes(): boolean {
    return this.records.at(-1)?.command?.kind === 'close'
  }

  /** A call begins. */
  call(clock: ClockWindow): void {
    this.#calls++
    this.#pending++
    this.clocks.push(clock)
  }

  /** A call ends. */
  settle(outcome: Exclude<AttemptStatus, 'pending'>): void {
    this.#pending--
    if (outcome === 'acknowledged') this.#isAcknowledged = true
    if (outcome === 'unknown') this.#isUnknown = true
  }

  /** For the sequential model of a stream. */
  get operation(): Append {
    const { matchSeqNum, fencingToken } = this.conditions
    const fence = this.records.findLast(({ command }) => command?.kind === 'fence')?.command
    return {
      kind: 'append',
      // The content of records is compared elsewhere.
      bodies: this.records.slice(fence?.kind === 'fence' ? 1 : 0).map(() => 'a record'),
      ...(matchSeqNum !== undefined && { matchSeqNum }),
      ...(fencingToken !== undefined && { fencingToken }),
      ...(fence?.kind === 'fence' && { setFencingToken: fence.token }),
    }
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

export function dataRecord(
  id: string,
  index: number,
  timestamp: number | undefined,
  bytes: number,
): SentRecord {
  const body = utf8(`${id}.${index}.`.padEnd(bytes, '*'))
  const headers: Header[] = index % 3 === 0 ? [[utf8('n'), utf8(id)]] : []
  return { headers, body, timestamp, meteredBytes: meteredBytesOf(headers, body), command: undefined }
}

export function fenceOf(token: string, timestamp: number | undefined): SentRecord {
  const { headers, body } = fenceRecord(token)
  const command: Command = { kind: 'fence', token }
  return { headers, body, timestamp, meteredBytes: meteredBytesOf(headers, body), command }
}

export function trimOf(seqNum: number, timestamp: number | undefined): SentRecord {
  const { headers, body } = trimRecord(seqNum)
  const command: Command = { kind: 'trim', seqNum }
  return { headers, body, timestamp, meteredBytes: meteredBytesOf(headers, body), command }
}

export function closeOf(timestamp: number | undefined): SentRecord {
  const { headers } = closeRecord()
  const body = utf8('')
  const command: Command = { kind: 'close' }
  return { headers, body, timestamp, meteredBytes: meteredBytesOf(headers, body), command }
}

export function inputOf({ headers, body, timestamp }: SentRecord): RecordInput {
  return { headers, body, timestamp }
}
