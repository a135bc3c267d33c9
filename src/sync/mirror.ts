import { equalBytes } from '../model/bytes.ts'
import { ERROR_KINDS, HeadwaterError } from '../model/errors.ts'
import type { StreamPosition, StreamTail } from '../model/position.ts'
import { assertReadQuery, type ReadQuery } from '../model/read-query.ts'
import { equalHeaders, type SequencedRecord } from '../model/record.ts'
import { assertMembers, type Check, type MembersOf, unchecked } from '../model/validation.ts'

/** The states of a mirror and its decisions: how a stream continues a copy, and what failures mean. */

/**
 * The current activity of a mirror:
 * - `connecting`: it connects to the remote stream, or waits for the state that another tab reports
 * - `catching-up`: it copies records that were appended before; `position` is the sequence number after the
 *   last one that is stored on this device, `tail` the end of the remote stream as far as it is known
 * - `live`: everything is stored on this device, and records arrive as they are appended
 * - `waiting`: other streams of its synced basin have the connections; it gets one in its turn
 * - `offline`: it tries again at `nextAttemptAt`, in milliseconds since the Unix epoch; `error` says why
 * - `stopped`: only the app can decide how to continue, for the `reason`; the local copy is kept as it is.
 *   `gap` are the records that are missing between it and the remote stream, if that was `trimmed`
 * - `closed`: the mirror was closed
 */
export type MirrorState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'catching-up'; readonly position: number; readonly tail: number }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'offline'; readonly error: HeadwaterError; readonly nextAttemptAt: number }
  | {
      readonly kind: 'stopped'
      readonly reason: StopReason
      readonly error: HeadwaterError
      readonly gap?: MirrorGap | undefined
    }
  | { readonly kind: 'closed' }

/** The state of a mirror that continues only after a call of `retry` or `restart`. */
export type StoppedMirror = Extract<MirrorState, { readonly kind: 'stopped' }>

/**
 * Why a mirror stopped:
 * - `trimmed`: the remote stream no longer has the records that follow those of the local copy
 * - `replaced`: the remote stream is another one than that of the local copy, or has lost records of it
 * - `missing`: the remote stream, of which there is a local copy, was deleted
 * - `denied`: the server does not accept the access token, or the token does not permit to read the stream
 * - `failed`: another error that a retry does not resolve, such as a missing encryption key
 */
export type StopReason = 'trimmed' | 'replaced' | 'missing' | 'denied' | 'failed'

/**
 * Sequence numbers from `from` to before `to`. An empty gap means that the copy can only be continued if the
 * stream is still the same one, which cannot be proved because the last record of the copy was trimmed too.
 */
export interface MirrorGap {
  /** The sequence number after the last record of the copy. */
  readonly from: number
  /** The sequence number of the first record that the remote stream still has. */
  readonly to: number
}

/** How many of its last records a copy is compared by: the server may have created the stream again. */
export const COMPARED_RECORDS = 16

/** The start of a mirror: the start of a read. */
export type MirrorStart = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

const START: MembersOf<MirrorStart> = { seqNum: unchecked, timestamp: unchecked, tailOffset: unchecked }

/** Throws `invalid` for a start that is not valid. */
export const assertStart: Check = (value, field) => {
  assertMembers(value, START, field, `${field}.`)
  assertReadQuery(value as MirrorStart)
}

/** Returns the query of a read from a start on, without an end. */
export function startQuery(from: MirrorStart, clamp = true) {
  const isGiven = Object.values(from).some((value) => value !== undefined)
  return { ...(isGiven ? from : { seqNum: 0 }), clamp, waitMs: Number.POSITIVE_INFINITY }
}

/** The end of the local copy of a stream. */
export interface CopyEnd {
  /** The identity of the stream that was copied, if its server has sent one. */
  readonly streamId?: string | undefined
  readonly tail: StreamPosition
  /** The records before the tail, at most {@link COMPARED_RECORDS}, as far as they were not trimmed. */
  readonly last: readonly SequencedRecord[]
}

/** What a read of the remote stream returns at once: records; none at the tail. */
export interface Arrival {
  readonly records: readonly SequencedRecord[]
  /** The tail of the remote stream. Known if there are no records. */
  readonly tail: StreamTail | undefined
  /** The identity of the remote stream, if its server sends one. */
  readonly streamId?: string | undefined
}

/** Returns the sequence number with which the records of a read begin. */
export function startOf({ records, tail }: Arrival): number {
  return records[0]?.seqNum ?? tail?.seqNum ?? 0
}

/** Whether the identity of a stream is known to be the one of another time. */
export function isSameStream(before: string | undefined, now: string | undefined): boolean {
  return before !== undefined && before === now
}

/** How a remote stream continues a local copy. */
type Continuation =
  | { readonly kind: 'same' }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'trimmed'; readonly gap: MirrorGap }

/** Returns the sequence number with which a read begins that continues a copy. */
export function comparedFrom({ tail, last }: CopyEnd): number {
  return Math.max(0, last[0]?.seqNum ?? tail.seqNum - 1)
}

/**
 * Decides whether a remote stream continues a local copy with at least one sequence number. It must have the
 * same identity, as far as that is known, and the last records of the copy, or if the last one was trimmed
 * here, one with the same timestamp. Where nothing can be compared because it was trimmed, only the identity
 * tells that nothing is missing; without one there is a gap, which may be empty.
 */
export function continuationOf(copy: CopyEnd, arrival: Arrival): Continuation {
  const { records, tail, streamId } = arrival
  const end = copy.tail.seqNum
  const position = startOf(arrival)
  const isOther = streamId !== undefined && copy.streamId !== undefined && streamId !== copy.streamId
  const isShorter = tail !== undefined && tail.seqNum < end
  if (isOther || isShorter || !isContinuedBy(copy, records)) return { kind: 'replaced' }
  if (position < end || (position === end && isUnstarted(copy))) return { kind: 'same' }
  if (position === end && isSameStream(copy.streamId, streamId)) return { kind: 'same' }
  if (records.length === 0 && position === end) {
    return { kind: tail?.timestamp === copy.tail.timestamp ? 'same' : 'replaced' }
  }
  return { kind: 'trimmed', gap: { from: end, to: position } }
}

/** Whether those of some records that lie before the end of a copy are the records of the copy. */
export function isContinuedBy(copy: CopyEnd, records: readonly SequencedRecord[]): boolean {
  const { tail, last } = copy
  if (isUnstarted(copy)) return true
  return records.every((record) => {
    const own = last.find(({ seqNum }) => seqNum === record.seqNum)
    if (own !== undefined) return equalRecords(own, record)
    return record.seqNum !== tail.seqNum - 1 || record.timestamp === tail.timestamp
  })
}

/** Whether a copy was created and has no records yet, so that every stream continues it. */
function isUnstarted({ tail, last }: CopyEnd): boolean {
  return last.length === 0 && tail.timestamp === 0
}

/** Whether two records are the same in every member that is stored. */
export function equalRecords(one: SequencedRecord, other: SequencedRecord): boolean {
  return (
    one.seqNum === other.seqNum &&
    one.timestamp === other.timestamp &&
    equalBytes(one.body, other.body) &&
    equalHeaders(one.headers, other.headers)
  )
}

/** Returns the state of a mirror whose copy is of another stream. */
export function replacedMirror(): StoppedMirror {
  const error = new HeadwaterError(
    'stream_deleted',
    'the remote stream was deleted and created again, or it has lost records that were copied',
  )
  return { kind: 'stopped', reason: 'replaced', error }
}

/** Returns the state of a mirror that cannot read records after those of its copy. */
export function trimmedMirror(gap: MirrorGap): StoppedMirror {
  const { from, to } = gap
  const what = from === to ? 'record before it' : `records from ${from} to ${to - 1}`
  const error = new HeadwaterError(
    'range_not_satisfiable',
    `the remote stream was trimmed beyond the local copy, which ends at ${from}: the ${what} cannot be read`,
  )
  return { kind: 'stopped', reason: 'trimmed', error, gap }
}

/** The messages between the mirrors of one copy in several tabs. */
export type MirrorMessage =
  | { readonly kind: 'state'; readonly state: MirrorState }
  /** Asks for the state. */
  | { readonly kind: 'hello' }
  /** Asks the mirror that copies to connect at once. */
  | { readonly kind: 'retry' }
  /** The copy was replaced by another one. */
  | { readonly kind: 'replaced' }

/** Returns the message as a value that can be cloned: an error is not, with all its members. */
export function encodeMessage(message: MirrorMessage): unknown {
  if (message.kind !== 'state' || !('error' in message.state)) return message
  const { code, message: text, mayHaveEffects, field } = message.state.error
  return { ...message, state: { ...message.state, error: { code, message: text, mayHaveEffects, field } } }
}

/** Returns the message that a value is. Only scripts of the app's origin can send one. */
export function decodeMessage(value: unknown): MirrorMessage {
  const message = value as MirrorMessage
  if (message.kind !== 'state' || !('error' in message.state)) return message
  const { code, message: text, mayHaveEffects, field } = message.state.error
  // The tab may run a later version of the app, which has more codes.
  const known = Object.hasOwn(ERROR_KINDS, code) ? code : 'other'
  const error = new HeadwaterError(known, text, { mayHaveEffects, field })
  return { ...message, state: { ...message.state, error } }
}
