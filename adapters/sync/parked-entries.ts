import { type HeadwaterError, invalid } from '../../src/model/errors.ts'
import {
  discardRecord,
  outcomeUnknownError,
  parkingNotes,
  retryRecord,
} from '../../src/sync/outbox-attempts.ts'
import type { LogRecord, OutboxState } from '../../src/sync/outbox-log.ts'
import type { OutboxLog } from './outbox-log.ts'

/** Parks the entries of the last attempt, which may be in a stream that no longer exists. */
export async function parkInDoubt(log: OutboxLog, signal: AbortSignal): Promise<void> {
  await log.caughtUp(signal)
  if (log.state.inDoubt) await parkAttempt(log, log.state, outcomeUnknownError(), signal)
}

/** Parks the entries of the last attempt that a state still has. */
export async function parkAttempt(
  log: OutboxLog,
  state: OutboxState,
  error: HeadwaterError,
  signal: AbortSignal,
): Promise<void> {
  const notes = parkingNotes(state, error)
  if (notes.length > 0) await log.append(notes, signal)
}

/** Stores the decision to send a parked entry again. */
export async function retryParked(log: OutboxLog, number: number, signal?: AbortSignal): Promise<void> {
  await decide(log, number, retryRecord(number), signal)
}

/** Stores the decision to discard a parked entry. */
export async function discardParked(log: OutboxLog, number: number, signal?: AbortSignal): Promise<void> {
  await decide(log, number, discardRecord(number), signal)
  // Another tab has decided to send it before.
  if (log.state.entries.has(number)) throw notParked(number)
}

async function decide(log: OutboxLog, number: number, note: LogRecord, signal?: AbortSignal): Promise<void> {
  if (log.end !== undefined) throw log.end
  // The parked batches are known only once the log has been read.
  await log.until(() => log.device !== undefined, signal)
  if (log.state.entries.get(number)?.error === undefined) throw notParked(number)
  await log.append([note], signal)
}

function notParked(number: number): HeadwaterError {
  return invalid(`no parked batch has the number ${number}`, 'number')
}
