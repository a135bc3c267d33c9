import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { meteredBytesOf, type SequencedRecord } from '../model/record.ts'
import { millisecondsOf } from '../model/validation.ts'

/** The remaining limits of a read; Infinity is unlimited. */
export interface ReadLimits {
  /** Records. */
  readonly count: number
  /** Metered bytes. */
  readonly bytes: number
  /** The timestamp, in milliseconds, before which the records must lie. */
  readonly until: number
}

/**
 * The bounds of a query. A unary read returns at most 1,000 records and 1 MiB (docs/protocol.md
 * "Unary reads").
 */
export function readLimits(query: ReadQuery, kind: 'unary' | 'session'): ReadLimits {
  const count = query.count ?? Number.POSITIVE_INFINITY
  const bytes = query.bytes ?? Number.POSITIVE_INFINITY
  return {
    count: kind === 'unary' ? Math.min(count, READ_RECORDS_MAX) : count,
    bytes: kind === 'unary' ? Math.min(bytes, READ_METERED_BYTES_MAX) : bytes,
    until: query.until === undefined ? Number.POSITIVE_INFINITY : millisecondsOf(query.until),
  }
}

/** The limits of the next batches of a session. */
export function withinBatches(limits: ReadLimits, batches: number): ReadLimits {
  return {
    count: Math.min(limits.count, batches * READ_RECORDS_MAX),
    bytes: Math.min(limits.bytes, batches * READ_METERED_BYTES_MAX),
    until: limits.until,
  }
}

/** The limits that remain after delivering records. */
export function afterDelivering(limits: ReadLimits, count: number, bytes: number): ReadLimits {
  if (limits.count === Number.POSITIVE_INFINITY && limits.bytes === Number.POSITIVE_INFINITY) return limits
  return { count: limits.count - count, bytes: limits.bytes - bytes, until: limits.until }
}

/** Whether no further record can be delivered, however small. */
export function isExhausted(limits: ReadLimits): boolean {
  return limits.count <= 0 || limits.bytes <= 0
}

/** Whether all of these records are within the limits. `lastTimestamp` is the largest timestamp of them. */
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

/** The records that limits admit: the first `count` of them. */
export interface Admitted {
  /** The number of records. */
  readonly count: number
  /** Their metered size. */
  readonly meteredBytes: number
}

/** The properties of a record that limits apply to. */
export interface SizedRecord {
  readonly timestamp: number
  readonly meteredBytes: number
}

/**
 * Counts the records that the limits admit, from the first one. It stops at the first record that does not
 * fit, even if a later one would, and has no minimum of one record (docs/protocol.md "Bounds").
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

/** Does the same as {@link admitSized}, for records that are not metered yet. */
export function admit(limits: ReadLimits, records: readonly SequencedRecord[]): Admitted {
  return admitSized(limits, sizesOf(records))
}

function* sizesOf(records: readonly SequencedRecord[]): Generator<SizedRecord, void, undefined> {
  for (const { timestamp, headers, body } of records) {
    yield { timestamp, meteredBytes: meteredBytesOf(headers, body) }
  }
}
