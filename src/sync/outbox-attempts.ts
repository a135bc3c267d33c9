import { HeadwaterError } from '../model/errors.ts'
import { BATCH_RECORDS_MAX } from '../model/limits.ts'
import {
  type BatchAttempt,
  type LogRecord,
  noteRecord,
  type OutboxEntry,
  type OutboxState,
  type ParkedNote,
} from './outbox-log.ts'
import { type AfterRefusal, entriesToSend } from './outbox-plan.ts'

/**
 * The batches that an outbox sends, as those of an idempotent producer (docs/protocol.md "Producers").
 *
 * The contents of a batch are written to the log before it is sent, and its epoch and number never mean
 * another batch: if it is sent again, by any tab, the server stores it once.
 *
 * Batch 0 of an epoch has a position: it is conditional on that tail, and everything below was examined. So
 * it works on servers without producers, and a batch of an earlier epoch was either found or comes too late.
 * All attempts at lower positions are settled, because their conditions cannot hold any more.
 *
 * If other writers append first, batch 0 is sent without a condition. This requires a server that has just
 * shown that it supports producers, and that every earlier attempt to send its entries had a position and is
 * settled. Later batches never have a condition: each requires that a server with producers has acknowledged
 * the one before.
 */

/** A batch to send. */
export interface NextAttempt extends Omit<BatchAttempt, 'numbers' | 'after'> {
  readonly entries: readonly OutboxEntry[]
  /** Whether the log contains the attempt. */
  readonly isNoted: boolean
}

/** The knowledge of a sender about the last attempt that is not in the log. */
interface AttemptKnowledge {
  readonly afterRefusal: AfterRefusal
  /** Every record of the server's stream below this sequence number was examined. */
  readonly position: number
  /** Whether the server has just shown that it supports producers. */
  readonly supportsProducers: boolean
  /** How many entries a batch may have, at least 1. Lower after the server has refused a batch. */
  readonly entriesMax: number
  /** The place of the attempt that a server with producers has acknowledged: its epoch can be continued. */
  readonly acknowledgedAt: number | undefined
  /**
   * The place of an attempt that need not be repeated, because the server has rejected it. A conditional
   * attempt is repeated nevertheless if it would be the same.
   */
  readonly abandonedAt: number | undefined
  /** The lowest epoch that the server may accept. */
  readonly epochMin: number
}

/** Returns the batch to send next; undefined if there is nothing to send. */
export function nextAttempt(state: OutboxState, knowledge: AttemptKnowledge): NextAttempt | undefined {
  const { afterRefusal, position, supportsProducers, entriesMax, acknowledgedAt, abandonedAt, epochMin } =
    knowledge
  const { attempt } = state
  const chosen = entriesToSend(state, afterRefusal, entriesMax)
  if (chosen.length === 0) return undefined
  const isSettled = areSettled(state, position)
  const first = {
    seq: 0,
    entries: chosen,
    position: supportsProducers && isSettled ? undefined : position,
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
 * Returns whether no earlier attempt can still store an entry of the outbox: no attempt contained it, or all
 * that did were conditional on positions below the given one. An attempt for a parked entry may still do so.
 */
function areSettled({ entries, attempt }: OutboxState, position: number): boolean {
  for (const { error } of entries.values()) if (error !== undefined) return false
  if (attempt === undefined) return true
  // The number of an entry is its place in the log.
  const [oldest] = entries.keys()
  const isPassed = attempt.position !== undefined && attempt.position < position
  return oldest! > attempt.at || (attempt.isSettled && isPassed)
}

/** Returns the waiting entries of an attempt, or of the outbox if there is no attempt. */
export function waitingEntries(
  { entries }: OutboxState,
  attempt: Pick<BatchAttempt, 'numbers'> | undefined,
): readonly OutboxEntry[] {
  const waiting: OutboxEntry[] = []
  for (const number of attempt?.numbers ?? entries.keys()) {
    const entry = entries.get(number)
    if (entry !== undefined && entry.error === undefined) waiting.push(entry)
  }
  return waiting
}

/** Returns the error of entries that the server may have stored. */
export function outcomeUnknownError(): HeadwaterError {
  return new HeadwaterError(
    'outcome_unknown',
    'it cannot be known whether the server has stored these records; retry or discard them',
  )
}

/** Returns the error of entries that were stored in a stream that has been deleted since. */
export function deletedStreamError(): HeadwaterError {
  return new HeadwaterError(
    'stream_deleted',
    'the stream was deleted before these records were copied; retry or discard them',
  )
}

/** Returns the records that park the entries of the last attempt, at most as many as one append may have. */
export function parkingNotes(state: OutboxState, error: HeadwaterError): LogRecord[] {
  const waiting = waitingEntries(state, state.attempt)
  return waiting.slice(0, BATCH_RECORDS_MAX).map(({ number }) => parkedRecord(number, error))
}

/** Returns an attempt as a record of the log. `after` is the place of the attempt before, or -1. */
export function attemptNote(
  { entries, epoch, seq, position, isSettled }: NextAttempt,
  after: number,
): LogRecord {
  const numbers = entries.map(({ number }) => number)
  return attemptRecord({ epoch, seq, numbers, position, isSettled, after })
}

/**
 * Returns the attempt to send an entry that is appended together with this attempt, as a record of the log.
 * Undefined if other entries come first, or if no server with producers has acknowledged the attempt before.
 * `leaving` names entries that will have left the outbox; if they have not, the attempt does not count.
 */
export function attemptWithEntry(
  { attempt, entries }: OutboxState,
  acknowledgedAt: number | undefined,
  records: number,
  leaving: ReadonlySet<number> = new Set(),
): LogRecord | undefined {
  if (attempt === undefined || attempt.at !== acknowledgedAt) return undefined
  if (records >= BATCH_RECORDS_MAX) return undefined
  for (const number of entries.keys()) if (!leaving.has(number)) return undefined
  const { epoch, seq, at } = attempt
  const numbers = [-records]
  return attemptRecord({ epoch, seq: seq + 1, numbers, position: undefined, isSettled: false, after: at })
}

/** Returns an attempt as a record of the log. */
export function attemptRecord(attempt: BatchAttempt): LogRecord {
  return noteRecord('attempt', attempt)
}

/** Returns the note that an entry is parked as a record of the log. */
export function parkedRecord(number: number, { code, message }: HeadwaterError): LogRecord {
  return noteRecord('parked', { number, code, message } satisfies ParkedNote)
}

/** Returns the decision to send a parked entry again as a record of the log. */
export function retryRecord(number: number): LogRecord {
  return noteRecord('retry', { number })
}

/** Returns the decision to discard an entry as a record of the log. */
export function discardRecord(number: number): LogRecord {
  return noteRecord('discard', { number })
}

function isOf({ numbers }: BatchAttempt, entries: readonly OutboxEntry[]): boolean {
  return entries.length === numbers.length && entries.every(({ number }, index) => number === numbers[index])
}
