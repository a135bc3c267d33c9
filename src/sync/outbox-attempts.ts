import { HeadwaterError } from '../model/errors.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import {
  attemptRecord,
  type BatchAttempt,
  type LogRecord,
  type OutboxEntry,
  type OutboxState,
  parkedRecord,
} from './outbox-log.ts'
import { type AfterRefusal, entriesToSend } from './outbox-plan.ts'

/**
 * The batches that an outbox sends, as those of an idempotent producer (docs/protocol.md "Producers").
 *
 * What a batch contains is written to the log before it is sent, and a number means the same batch for ever:
 * if it is sent again, by whichever tab, the server stores it once.
 *
 * Batch 0 of an epoch is conditional on the tail, after everything below was examined. So it needs no server
 * that knows producers, and whatever was sent in an earlier epoch is either found or comes too late. As the
 * position is a part of the attempt, all attempts at lower ones are settled. If others append first, batch 0
 * is sent without a condition, to a server that has just shown that it knows producers: but only if each
 * attempt to send its entries had a position, and is settled. A later batch never has a condition: it is only
 * made once a server with producers has acknowledged the one before.
 */

/** A batch to send. */
export interface NextAttempt extends Omit<BatchAttempt, 'numbers' | 'after'> {
  readonly entries: readonly OutboxEntry[]
  /** Whether the log has it. */
  readonly isNoted: boolean
}

/** What a sender knows about the last attempt, beside the log. */
export interface AttemptKnowledge {
  readonly afterRefusal: AfterRefusal
  /** Every record of the server's stream below this sequence number was examined. */
  readonly position: number
  /** The server has just shown that it knows producers. */
  readonly isOffered: boolean
  /** Entries are sent one by one, to find the one that the server refuses. */
  readonly isSingle: boolean
  /** The place of the attempt that a server with producers has acknowledged, so that it can be continued. */
  readonly acknowledgedAt: number | undefined
  /**
   * The place of an attempt that need not be made again: the server has rejected it. A conditional one is
   * made again if it would be the same.
   */
  readonly abandonedAt: number | undefined
  /** The lowest epoch that the server may accept. */
  readonly epochMin: number
}

/** Returns the batch to send next; undefined if there is nothing to send. */
export function nextAttempt(state: OutboxState, knowledge: AttemptKnowledge): NextAttempt | undefined {
  const { afterRefusal, isOffered, isSingle, acknowledgedAt, abandonedAt, epochMin, position } = knowledge
  const { attempt } = state
  const chosen = entriesToSend(state, afterRefusal, isSingle)
  if (chosen.length === 0) return undefined
  const isSettled = areSettled(state, position)
  const first = {
    seq: 0,
    entries: chosen,
    position: isOffered && isSettled ? undefined : position,
    isSettled,
    isNoted: false,
  }
  if (attempt === undefined) return { ...first, epoch: epochMin }
  const { epoch, seq, at } = attempt
  if (at === acknowledgedAt) return { ...first, epoch, seq: seq + 1, position: undefined, isSettled: false }
  const entries = waitingEntries(state, attempt)
  const isWhole = entries.length === attempt.numbers.length && epoch >= epochMin
  const isHere = attempt.position === undefined || attempt.position === position
  const isSame = at !== abandonedAt || (attempt.position !== undefined && isOf(attempt, chosen))
  if (isWhole && isHere && isSame)
    return { epoch, seq, entries, position: attempt.position, isSettled: attempt.isSettled, isNoted: true }
  return { ...first, epoch: Math.max(epoch + 1, epochMin) }
}

/**
 * Whether no attempt that was made can store an entry of the outbox any more: none has contained it, or all
 * those were conditional on positions below the given one. That of an entry that was parked may.
 */
function areSettled({ entries, attempt }: OutboxState, position: number): boolean {
  for (const { error } of entries.values()) if (error !== undefined) return false
  if (attempt === undefined) return true
  // The number of an entry is its place in the log.
  const [oldest] = entries.keys()
  const isPassed = attempt.position !== undefined && attempt.position < position
  return oldest! > attempt.at || (attempt.isSettled && isPassed)
}

/** Returns the entries of an attempt that wait for the server, or all that do if there is no attempt. */
export function waitingEntries(
  { entries }: OutboxState,
  attempt: Pick<BatchAttempt, 'numbers'> | undefined,
): readonly OutboxEntry[] {
  const numbers = attempt?.numbers ?? [...entries.keys()]
  return numbers.flatMap((number) => {
    const entry = entries.get(number)
    return entry === undefined || entry.error !== undefined ? [] : [entry]
  })
}

/** Returns the records that park the entries of the last attempt, as many as an append may have. */
export function parkingNotes(state: OutboxState): LogRecord[] {
  const error = new HeadwaterError(
    'outcome_unknown',
    'it cannot be known whether the server has stored these records; retry or discard them',
  )
  const waiting = waitingEntries(state, state.attempt)
  return waiting.slice(0, BATCH_RECORDS_MAX).map(({ number }) => parkedRecord(number, error))
}

/** Returns an attempt as a record that follows a state of the log. */
export function attemptNote(
  { entries, epoch, seq, position, isSettled }: NextAttempt,
  state: OutboxState,
): LogRecord {
  const numbers = entries.map(({ number }) => number)
  return attemptRecord({ epoch, seq, numbers, position, isSettled, after: state.attempt?.at ?? -1 })
}

function isOf({ numbers }: BatchAttempt, entries: readonly OutboxEntry[]): boolean {
  return entries.length === numbers.length && entries.every(({ number }, index) => number === numbers[index])
}
