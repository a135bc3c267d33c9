import type { HeadwaterError } from '../model/errors.ts'
import { type BatchAttempt, type LogRecord, noteRecord, type ParkedNote } from './outbox-log.ts'

/** The notes in the log of an outbox that only its sender writes. */

/** Returns an attempt as a record of the log. */
export function attemptRecord(attempt: BatchAttempt): LogRecord {
  return noteRecord('attempt', attempt)
}

/** Returns the refusal of an entry as a record of the log. */
export function parkedRecord(number: number, { code, message }: HeadwaterError): LogRecord {
  return noteRecord('parked', { number, code, message } satisfies ParkedNote)
}
