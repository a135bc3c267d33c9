import type { RecordInput } from '../model/append-input.ts'
import { concatBytes, lossyTextOf, textOf } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import { isCommandShaped, type SequencedRecord } from '../model/record.ts'
import type { NumberedItem, StreamChange } from './changes.ts'

/** The members of a record that every fold can use: its position, which a pending record does not have. */
export interface FoldedRecord {
  /** The position in the stream; undefined while the record is pending. */
  readonly seqNum?: number | undefined
  /** The timestamp, in milliseconds unless the writer uses another unit. */
  readonly timestamp?: number | undefined
}

/** The identity of a record by which a fold recognizes the stream that it has read before. */
interface RecordMark {
  readonly seqNum: number
  readonly timestamp: number
}

/** The value of a fold at a position of its stream. */
export interface FoldState<State, Pending = unknown> {
  /** The reduction of all confirmed records below the position. */
  readonly confirmed: State
  /** The sequence number after the last confirmed record. */
  readonly position: number
  /** The last record that was reduced; undefined if there is none. */
  readonly last: RecordMark | undefined
  /** The reduction of the pending records on top of the confirmed ones. */
  readonly value: State
  /** The pending records that `value` contains. */
  readonly pending: readonly NumberedItem<Pending>[]
}

/** Returns the value of a reducer and a record. */
type Reduce<State, Item> = (state: State, record: Item) => State

/** The outcome of a change. */
type FoldOutcome<State, Pending> =
  | { readonly kind: 'next'; readonly state: FoldState<State, Pending> }
  /** Records from `from` to before `to` were trimmed before the fold saw them. */
  | { readonly kind: 'gap'; readonly from: number; readonly to: number }
  /** The stream is not the one that the state was derived from. */
  | { readonly kind: 'replaced' }

/** Returns the state of a fold that has reduced confirmed records to a value. */
export function foldStateAt<State>(
  confirmed: State,
  position = 0,
  last?: RecordMark | undefined,
): FoldState<State, never> {
  return { confirmed, position, last, value: confirmed, pending: [] }
}

/**
 * Returns the sequence number at which a fold continues to read: that of the last record that it has reduced,
 * so that the record can be compared.
 */
export function startOfChanges({ position, last }: FoldState<unknown>): number {
  return last?.seqNum ?? position
}

/**
 * Decides how a change affects a state. Confirmed records that the state contains are compared and skipped.
 * Pending records are applied to the confirmed state, again if that has changed. With `skipsGaps`, records
 * that were trimmed unread are ignored. Throws `reducer_failed` with the record if the reducer throws.
 */
export function foldChange<State, Confirmed extends FoldedRecord, Pending>(
  state: FoldState<State, Pending>,
  change: StreamChange<Confirmed, Pending>,
  reduce: Reduce<State, Confirmed | Pending>,
  skipsGaps = false,
): FoldOutcome<State, Pending> {
  if (isOfOtherStream(state, change)) return { kind: 'replaced' }
  const { start } = change
  if (start !== undefined && start > state.position && !skipsGaps) {
    return { kind: 'gap', from: state.position, to: start }
  }
  let { confirmed } = state
  let newest: Confirmed | undefined
  for (const record of change.confirmed) {
    if (record.seqNum === undefined || record.seqNum < state.position) continue
    try {
      confirmed = reduce(confirmed, record)
    } catch (cause) {
      throw reducerError(cause, `record ${record.seqNum}`, record.seqNum)
    }
    newest = record
  }
  const last = newest === undefined ? state.last : markOf(newest)
  const position = Math.max(state.position, change.position)
  const { pending } = change
  return { kind: 'next', state: { confirmed, position, last, pending, value: withPending() } }

  function withPending(): State {
    // Most often, nothing was confirmed and one more record is pending.
    const isKept = Object.is(confirmed, state.confirmed) && isPrefix(state.pending, pending)
    let value = isKept ? state.value : confirmed
    for (const { number, item } of isKept ? pending.slice(state.pending.length) : pending) {
      try {
        value = reduce(value, item)
      } catch (cause) {
        throw reducerError(cause, `pending record ${number}`)
      }
    }
    return value
  }
}

/** Whether a change shows that the stream is another one, or was emptied, since the state was derived. */
function isOfOtherStream<Confirmed extends FoldedRecord>(
  { position, last }: FoldState<unknown>,
  change: StreamChange<Confirmed, unknown>,
): boolean {
  if (position === 0) return false
  if (change.isReset === true) return true
  if (change.isCaughtUp && change.position < position) return true
  if (last === undefined) return false
  const [first] = change.confirmed
  if (first?.seqNum === last.seqNum) return (first.timestamp ?? 0) !== last.timestamp
  // The record is missing where it was, or is a command now. Changes begin at it or after it.
  return change.start !== undefined && change.start <= last.seqNum && change.position > last.seqNum
}

function markOf({ seqNum, timestamp = 0 }: FoldedRecord): RecordMark {
  return { seqNum: seqNum!, timestamp }
}

function reducerError(cause: unknown, record: string, seqNum?: number): HeadwaterError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new HeadwaterError('reducer_failed', `the reducer threw at ${record}: ${reason}`, { seqNum, cause })
}

function isPrefix<Item>(records: readonly NumberedItem<Item>[], of: readonly NumberedItem<Item>[]): boolean {
  if (records.length > of.length) return false
  return records.every(({ number, item }, index) => number === of[index]!.number && item === of[index]!.item)
}

/** The share of `snapshotEvery` that is enough for one more snapshot when a fold is closed. */
const SHARE_ON_CLOSE = 0.1

/** The progress of a fold since its last snapshot. */
interface SnapshotProgress {
  readonly position: number
  /** The position of the newest snapshot, or of the last attempt to store one; 0 if there was none. */
  readonly saved: number
  /** The number of records after which a snapshot is due. */
  readonly every: number
}

/**
 * Whether a snapshot is due. A fold that catches up stores one each time its position has doubled, so that it
 * makes progress across interruptions without storing a thousand snapshots of a long history. One that is
 * closed needs fewer new records.
 */
export function isSnapshotDue(
  { position, saved, every }: SnapshotProgress,
  phase: 'catching-up' | 'following' | 'closing',
): boolean {
  const catchingUp = Math.max(every, saved)
  const needed = { 'catching-up': catchingUp, following: every, closing: every * SHARE_ON_CLOSE }[phase]
  return position - saved >= needed
}

/** The stream and the reducer that a snapshot belongs to. A fold uses only snapshots of its own kind. */
interface SnapshotKind {
  /** The identity of the folded stream, which differs if the stream was deleted and created again. */
  readonly source: string
  /** The version of the reducer. */
  readonly version: number | string
}

/** A value of a fold at a position. */
export interface FoldSnapshot extends SnapshotKind {
  /** The sequence number after the last record that the value contains. */
  readonly position: number
  /** The last record that the value contains; null if there is none. */
  readonly last: RecordMark | null
  /** Whether the state is JSON, or bytes of the app's own. */
  readonly isJson: boolean
  /** The encoded state. */
  readonly state: Uint8Array
}

/** Whether a snapshot is of a kind. */
function isOfKind({ source, version }: SnapshotKind, kind: SnapshotKind): boolean {
  return source === kind.source && version === kind.version
}

/**
 * Whether a snapshot that another fold has stored makes the one of this fold unnecessary. One of the same
 * kind does if its position is less than `every` records earlier. One of another kind does if this fold has
 * loaded or stored a snapshot before: the version of the app that was opened last wins.
 */
export function isSuperseded(
  own: FoldSnapshot,
  other: SnapshotPart,
  every: number,
  isStored: boolean,
): boolean {
  return isOfKind(other, own) ? own.position - other.position < every : isStored
}

/** The name of the header that describes a part of a snapshot. */
const HEADER = 'headwater-snapshot'
/** Two parts fit in a batch, so that the last part can be read with the trim that follows it. */
const PART_BYTES = 500_000
/** Raised when the format changes. Snapshots of another format are ignored. */
const FORMAT = 1

/** One record of a snapshot that is divided into parts. Its `state` is a part of the state. */
interface SnapshotPart extends FoldSnapshot {
  /** The place of the part, from 0. */
  readonly index: number
  readonly count: number
}

/** Divides a snapshot into records, each of which fits in a batch. */
export function recordsOfSnapshot(snapshot: FoldSnapshot, partBytes = PART_BYTES): readonly RecordInput[] {
  const { state, ...described } = snapshot
  const count = Math.max(1, Math.ceil(state.length / partBytes))
  return Array.from({ length: count }, (_, index) => ({
    headers: [[HEADER, JSON.stringify({ format: FORMAT, index, count, ...described })]] as const,
    body: state.subarray(index * partBytes, (index + 1) * partBytes),
  }))
}

/** Returns the part of a snapshot that a record holds, or undefined if it holds none. */
export function snapshotPartOf({ headers, body }: SequencedRecord): SnapshotPart | undefined {
  const header = headers.find(([name]) => lossyTextOf(name) === HEADER)
  const text = header && textOf(header[1])
  if (text === undefined) return undefined
  try {
    const { format, ...part } = JSON.parse(text)
    return format === FORMAT ? { ...part, state: body } : undefined
  } catch {
    return undefined
  }
}

/** What is known of a stream of snapshots after a part of it was read. */
interface SnapshotScan {
  /** The newest complete snapshot. */
  readonly newest: FoldSnapshot | undefined
  /** The parts of a snapshot that is not complete. */
  readonly parts: readonly SnapshotPart[]
  /** The sequence number after the last record. */
  readonly end: number
}

/** The scan of a stream of which nothing was read. */
export const EMPTY_SCAN: SnapshotScan = { newest: undefined, parts: [], end: 0 }

/**
 * Reads further records of a stream of snapshots. Snapshots of other kinds, and those that are not complete,
 * are ignored. Parts in a row belong together: a fold appends each of them only right behind the one before.
 */
export function scanSnapshots(
  scan: SnapshotScan,
  records: readonly SequencedRecord[],
  kind: SnapshotKind,
): SnapshotScan {
  let { newest, parts, end } = scan
  for (const record of records) {
    if (record.seqNum !== end) parts = []
    end = record.seqNum + 1
    // The trim of older snapshots.
    if (isCommandShaped(record.headers)) continue
    const part = snapshotPartOf(record)
    if (part === undefined || (part.index > 0 && part.index !== parts.length)) parts = []
    else parts = part.index === 0 ? [part] : [...parts, part]
    if (part === undefined || parts.length < part.count) continue
    const { index: _, count: __, ...described } = part
    const state = concatBytes(parts.map((each) => each.state))
    if (isOfKind(part, kind)) newest = { ...described, state }
    parts = []
  }
  return { newest, parts, end }
}
