import {
  type AppendConditions,
  type Command,
  fenceRecord,
  type RecordInput,
  trimRecord,
} from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'
import type { AppendOperation } from '../linearizability/operations.ts'
import { recordHash } from '../linearizability/stream-hash.ts'
import type { ClockWindow } from './engine-clock.ts'
import type { StoredLog } from './stored-log.ts'

/** A record that somebody asked to append. */
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
  /** Certainly without effect, for ever. */
  | 'not made'
  /** Took effect, may yet, or never will: never twice. */
  | 'unknown'

/** Appends that take effect in their order, and none of them behind one that did not. */
export interface AttemptGroup {
  /**
   * From which version of the stream on a deletion may end it. It stays with the incarnation that its engine has at hand, which on a shared storage may have been deleted
   * by another engine long before it is opened: its first append tells.
   */
  readonly since: number
  readonly attempts: AppendAttempt[]
}

/** One append that somebody asked for, and what is known of it. */
export class AppendAttempt {
  /** Its records bear it, so that they are known when they turn up. */
  readonly id: string
  readonly stream: string
  readonly records: readonly SentRecord[]
  readonly conditions: AppendConditions
  /** In an append session or a producer. */
  readonly group: AttemptGroup | undefined
  /** Whose single appends keep their order, and the place of this one among them. */
  readonly turn: { readonly caller: object; readonly number: number } | undefined
  /** The observed version of the stream when it was asked for. */
  readonly since: number
  readonly clock: ClockWindow
  status: AttemptStatus = 'pending'
  stored: { readonly log: StoredLog; readonly seqNum: number } | undefined

  constructor(
    attempt: Pick<
      AppendAttempt,
      'id' | 'stream' | 'records' | 'conditions' | 'group' | 'turn' | 'since' | 'clock'
    >,
  ) {
    this.id = attempt.id
    this.stream = attempt.stream
    this.records = attempt.records
    this.conditions = attempt.conditions
    this.group = attempt.group
    this.turn = attempt.turn
    this.since = attempt.since
    this.clock = attempt.clock
    this.group?.attempts.push(this)
  }

  /** For the sequential model of a stream. */
  get operation(): AppendOperation {
    const { matchSeqNum, fencingToken } = this.conditions
    const fence = this.records.findLast(({ command }) => command?.kind === 'fence')?.command
    return {
      kind: 'append',
      // What the records hold is compared byte by byte elsewhere.
      recordHashes: this.records.map(() => ID_HASH),
      ...(matchSeqNum !== undefined && { matchSeqNum }),
      ...(fencingToken !== undefined && { fencingToken }),
      ...(fence?.kind === 'fence' && { setFencingToken: fence.token }),
    }
  }
}

const ID_HASH = recordHash(utf8('a record'))

/** Whose record it is: the id stands before a point at the beginning of bodies, and is the fencing token that a command sets. */
export function attemptIdOf(body: Uint8Array): string | undefined {
  const beginning = new TextDecoder().decode(body.subarray(0, 16))
  return /^(a\d+)(\.|$)/.exec(beginning)?.[1]
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

export function inputOf({ headers, body, timestamp }: SentRecord): RecordInput {
  return { headers, body, timestamp }
}
