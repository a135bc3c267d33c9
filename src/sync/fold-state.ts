import { HeadwaterError } from '../model/errors.ts'
import type { NumberedItem, StreamChange } from './changes.ts'

/**
 * The members of a record that every fold can use: its position, which a pending record does not have.
 *
 * ```ts
 * const lastAt = fold(todo, {
 *   version: 1,
 *   initial: 0,
 *   reduce: (latest, { seqNum, timestamp = 0 }: FoldedRecord) => (seqNum === undefined ? latest : timestamp),
 * })
 * ```
 */
export interface FoldedRecord {
  /** The position in the stream; undefined while the record is pending. */
  readonly seqNum?: number | undefined
  /** The timestamp, in milliseconds unless the writer uses another unit. */
  readonly timestamp?: number | undefined
}

/** The identity of a record by which a fold recognizes the stream that it has read before. */
export interface RecordMark {
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
  /** Keys of confirmed records that the source may still name as pending. */
  readonly leaving: readonly string[]
}

/** Returns the value of a reducer and a record. */
export type Reduce<State, Item> = (state: State, record: Item) => State

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
  leaving: readonly string[] = [],
): FoldState<State, never> {
  return { confirmed, position, last, value: confirmed, pending: [], leaving }
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
  const { pending, leaving = [] } = change
  return { kind: 'next', state: { confirmed, position, last, pending, leaving, value: withPending() } }

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
