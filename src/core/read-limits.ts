import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { meteredBytesOf, type SequencedRecord } from '../model/record.ts'

/** What a read may still deliver. Infinity where nothing bounds it. */
export interface ReadLimits {
  readonly count: number
  readonly bytes: number
  /** Exclusive timestamp. */
  readonly until: number
}

/** The bounds of a query; a unary read is capped at 1,000 records and 1 MiB (service-interface.md "Read records" rule 5). */
export function readLimits(query: ReadQuery, kind: 'unary' | 'session'): ReadLimits {
  const count = query.count ?? Number.POSITIVE_INFINITY
  const bytes = query.bytes ?? Number.POSITIVE_INFINITY
  return {
    count: kind === 'unary' ? Math.min(count, READ_RECORDS_MAX) : count,
    bytes: kind === 'unary' ? Math.min(bytes, READ_METERED_BYTES_MAX) : bytes,
    until: query.until ?? Number.POSITIVE_INFINITY,
  }
}

/** The smaller of each: what one batch of a session may hold of what the session may still deliver. */
export function withinOneBatch(limits: ReadLimits): ReadLimits {
  return withinBatches(limits, 1)
}

/** The same for so many batches. */
export function withinBatches(limits: ReadLimits, batches: number): ReadLimits {
  return {
    count: Math.min(limits.count, batches * READ_RECORDS_MAX),
    bytes: Math.min(limits.bytes, batches * READ_METERED_BYTES_MAX),
    until: limits.until,
  }
}

export function afterDelivering(limits: ReadLimits, count: number, bytes: number): ReadLimits {
  return { count: limits.count - count, bytes: limits.bytes - bytes, until: limits.until }
}

/** True once a bound is used up to the last record or byte: nothing more can be delivered. */
export function isExhausted(limits: ReadLimits): boolean {
  return limits.count <= 0 || limits.bytes <= 0
}

/** Whether all of these records are within the limits; `lastTimestamp` is the largest of their timestamps. */
export function admitsAll(
  limits: ReadLimits,
  records: { readonly count: number; readonly meteredBytes: number; readonly lastTimestamp: number },
): boolean {
  return (
    records.count <= limits.count &&
    records.meteredBytes <= limits.bytes &&
    records.lastTimestamp < limits.until
  )
}

export interface Admitted {
  /** How many records from the first one on. */
  readonly count: number
  readonly meteredBytes: number
}

/** A record, as far as limits go. */
export interface SizedRecord {
  readonly timestamp: number
  readonly meteredBytes: number
}

/**
 * How many records, from the first on, the limits admit. The first that they do not admit ends it: no later, smaller record is
 * taken instead, and there is no minimum of one (wire-behaviour.md 5.5).
 */
export function admitSized(limits: ReadLimits, records: Iterable<SizedRecord>): Admitted {
  let meteredBytes = 0
  let count = 0
  for (const record of records) {
    const size = record.meteredBytes
    const fits =
      count < limits.count && meteredBytes + size <= limits.bytes && record.timestamp < limits.until
    if (!fits) break
    meteredBytes += size
    count++
  }
  return { count, meteredBytes }
}

/** The same for records that have yet to be metered. */
export function admit(limits: ReadLimits, records: readonly SequencedRecord[]): Admitted {
  return admitSized(limits, sizesOf(records))
}

function* sizesOf(records: readonly SequencedRecord[]): Generator<SizedRecord, void, undefined> {
  for (const { timestamp, headers, body } of records) {
    yield { timestamp, meteredBytes: meteredBytesOf(headers, body) }
  }
}
