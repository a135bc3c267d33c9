import { type AppendBatch, appendBatch, batchSizeError, type RecordInput } from '../model/append-input.ts'
import { lossyTextOf } from '../model/bytes.ts'
import { type HeadwaterError, invalid } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { type AppendRecord, isCommandShaped, type SequencedRecord } from '../model/record.ts'
import {
  type Confirmation,
  type Confirmed,
  isWaiting,
  OUTBOX_HEADER,
  type OutboxEntry,
  type OutboxState,
} from './outbox-log.ts'
import { ORIGIN_HEADER, ORIGIN_METERED_BYTES, originHeader, originOf } from './synced-record.ts'

/** The decisions of an outbox and its sender, as functions of the log (docs/sync-protocol.md). */

const FIRST_CONTENTION_MS = 50
const CONTENTION_MS_MAX = 5_000

/** The treatment of records behind a parked one: they wait, or are sent. */
export type AfterRefusal = 'stop' | 'continue'

/**
 * The state of an outbox:
 * - `idle`: there is nothing to send, another tab sends, or the copy of a synced stream is not live
 * - `sending`: records are being sent
 * - `offline`: it tries again at `nextAttemptAt`, in milliseconds since the Unix epoch; `error` says why
 * - `stopped`: it cannot send, for a reason that a retry does not resolve, such as a missing key
 * - `closed`: the outbox was closed
 */
export type OutboxStatus =
  | { readonly kind: 'idle' }
  | { readonly kind: 'sending' }
  | { readonly kind: 'offline'; readonly error: HeadwaterError; readonly nextAttemptAt: number }
  | { readonly kind: 'stopped'; readonly error: HeadwaterError }
  | { readonly kind: 'closed' }

/** A parked batch: the server refused it, or may have stored it. */
export interface FailedAppend {
  /** The number with which `retry` and `discard` name the batch. */
  readonly number: number
  /** The reason why it was parked. */
  readonly error: HeadwaterError
  /** The records, as they were appended. Their `seqNum` is their number in the outbox. */
  readonly records: OutboxEntry['records']
}

/**
 * Validates records for an outbox, and copies them. Throws `invalid` for what a stream rejects, for command
 * records, which have a meaning only in their place on the server, and for headers of the outbox itself.
 */
export function outboxInput(
  input: RecordInput | readonly RecordInput[],
): Pick<AppendBatch, 'records' | 'meteredBytes'> {
  const batch = appendBatch(input)
  for (const { headers } of batch.records) {
    if (isCommandShaped(headers)) {
      throw invalid('an outbox cannot send command records; use the remote stream', 'records')
    }
    for (const [name] of headers) {
      const text = lossyTextOf(name)
      if (text !== OUTBOX_HEADER && text !== ORIGIN_HEADER) continue
      throw invalid(`the header \`${text}\` is reserved for outboxes`, 'headers')
    }
  }
  const meteredBytes = batch.meteredBytes + batch.records.length * ORIGIN_METERED_BYTES
  if (meteredBytes > BATCH_METERED_BYTES_MAX) throw batchSizeError(batch.records.length)
  return { records: batch.records, meteredBytes }
}

/**
 * Returns the entries of the next batch: the first ones that wait, as many as one batch may have, and at most
 * `entriesMax`. Empty if there is nothing to send. An entry that an earlier attempt may have stored has a
 * batch of its own: where it is found, the others of its batch are not.
 */
export function entriesToSend(
  { entries }: Pick<OutboxState, 'entries'>,
  afterRefusal: AfterRefusal,
  entriesMax: number,
): readonly OutboxEntry[] {
  const chosen: OutboxEntry[] = []
  let [records, meteredBytes] = [0, 0]
  for (const entry of entries.values()) {
    if (entry.error !== undefined && afterRefusal === 'stop') break
    if (!isWaiting(entry)) continue
    records += entry.records.length
    meteredBytes += entry.meteredBytes
    const fits = records <= BATCH_RECORDS_MAX && meteredBytes <= BATCH_METERED_BYTES_MAX
    const [first = entry] = chosen
    const isAlone = first.position !== undefined || entry.position !== undefined
    if (chosen.length > 0 && (isAlone || !fits || chosen.length >= entriesMax)) break
    chosen.push(entry)
  }
  return chosen
}

/** Returns the records of entries as they are sent to the server: with the header that identifies them. */
export function sentRecords(
  entries: readonly OutboxEntry[],
  device: string,
): Pick<AppendRecord, 'timestamp' | 'headers' | 'body'>[] {
  return entries.flatMap(({ records }) =>
    records.map(({ seqNum, timestamp, hasOwnTimestamp, headers, body, nonce }) => ({
      timestamp: hasOwnTimestamp ? timestamp : undefined,
      headers: [...headers, originHeader({ device, number: seqNum, nonce })],
      body,
    })),
  )
}

/** Returns the nonces of the records that name a device as their origin, by their numbers. */
export function ownNonces(records: readonly SequencedRecord[], device: string): ReadonlyMap<number, string> {
  const nonces = new Map<number, string>()
  for (const { headers } of records) {
    const origin = originOf(headers)
    if (origin?.device === device) nonces.set(origin.number, origin.nonce)
  }
  return nonces
}

/**
 * Returns the entries that are among records of the server, with their places, except those of which the log
 * says so already. An entry is stored as a whole, so any record of it shows where it is: the first ones may
 * have been trimmed.
 */
export function entriesFound(
  { entries, progress }: Pick<OutboxState, 'entries' | 'progress'>,
  records: readonly SequencedRecord[],
): Confirmed {
  const found = new Map<number, Confirmation>()
  const all = [...entries.values()]
  for (const { headers, seqNum, timestamp } of records) {
    const { device, number, nonce } = originOf(headers) ?? {}
    if (number === undefined || device !== progress?.device) continue
    // One of the first, since they are sent in order.
    const entry = all.find((each) => number < each.number + each.records.length)
    // Another writer may have copied the number, but not the nonce, unless it repeats the record.
    const isOwn = entry !== undefined && number >= entry.number && entry.records[0]!.nonce === nonce
    if (!isOwn || entry.isFound) continue
    const first = { seqNum: seqNum - (number - entry.number), timestamp }
    const { start } = found.get(entry.number) ?? { start: first }
    found.set(entry.number, { start, end: { seqNum: start.seqNum + entry.records.length, timestamp } })
  }
  return [...found]
}

/**
 * Milliseconds to wait before an append that others were faster than a number of times in succession, so that
 * of many writers a few compete at a time.
 */
export function contentionMs(losses: number, random: number): number {
  return Math.min(random * FIRST_CONTENTION_MS * 2 ** losses, CONTENTION_MS_MAX)
}
