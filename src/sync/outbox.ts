import { type AppendBatch, appendBatch, batchSizeError, type RecordInput } from '../model/append-input.ts'
import { lossyTextOf } from '../model/bytes.ts'
import { type HeadwaterError, invalid } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import { type AppendRecord, isCommandShaped, type SequencedRecord } from '../model/record.ts'
import { originHeader, originOf } from './origin.ts'
import {
  type Confirmation,
  type Confirmed,
  isWaiting,
  ORIGIN_HEADER,
  ORIGIN_METERED_BYTES,
  OUTBOX_HEADER,
  type OutboxEntry,
  type OutboxState,
} from './outbox-log.ts'

/** The decisions of an outbox and its sender, as functions of the log (docs/sync-protocol.md). */

const CONTENTION_MS_MAX = 5_000

/** The treatment of records behind a parked one: they wait, or are sent. */
export type AfterRefusal = 'stop' | 'continue'

/** The current activity of a sender. */
export type SenderState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'sending' }
  | { readonly kind: 'offline'; readonly error: HeadwaterError; readonly nextAttemptAt: number }
  | { readonly kind: 'stopped'; readonly error: HeadwaterError }

/**
 * The state of an outbox:
 * - `idle`: there is nothing to send, another tab sends, or the mirror of the copy is stopped
 * - `sending`: records are being sent
 * - `offline`: it tries again at `nextAttemptAt`, in milliseconds since the Unix epoch; `error` says why
 * - `stopped`: it cannot send, for a reason that a retry does not resolve, such as a missing key
 * - `closed`: the outbox was closed
 */
export type OutboxStatus = SenderState | { readonly kind: 'closed' }

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
 * Returns the entries that the next attempt contains: the first ones that wait, as many as one batch may
 * have, and at most `entriesMax`. Empty if there is nothing to send.
 */
export function entriesToSend(
  { entries }: OutboxState,
  afterRefusal: AfterRefusal,
  entriesMax: number,
): readonly OutboxEntry[] {
  const chosen: OutboxEntry[] = []
  let [records, meteredBytes] = [0, 0]
  for (const entry of entries.values()) {
    if (!isWaiting(entry)) {
      if (entry.error !== undefined && afterRefusal === 'stop') break
      continue
    }
    records += entry.records.length
    meteredBytes += entry.meteredBytes
    const fits = records <= BATCH_RECORDS_MAX && meteredBytes <= BATCH_METERED_BYTES_MAX
    if (chosen.length > 0 && (!fits || chosen.length >= entriesMax)) break
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

/** Returns the entries of a batch that was acknowledged, with their places. */
export function confirmationsOf(entries: readonly OutboxEntry[], { start, end }: Confirmation): Confirmed {
  let { seqNum } = start
  return entries.map(({ number, records }) => {
    const first = { seqNum, timestamp: start.timestamp }
    seqNum += records.length
    return [number, { start: first, end: { seqNum, timestamp: end.timestamp } }] as const
  })
}

/**
 * Returns the entries that a batch of the producer was stored with, by its number of records: every attempt at
 * it began with the entries that wait. Undefined if that is not certain.
 */
export function storedEntries(
  state: OutboxState,
  afterRefusal: AfterRefusal,
  { start, end }: Confirmation,
): readonly OutboxEntry[] | undefined {
  if (state.isMixed) return undefined
  const stored: OutboxEntry[] = []
  let left = end.seqNum - start.seqNum
  for (const entry of entriesToSend(state, afterRefusal, Number.POSITIVE_INFINITY)) {
    if (left <= 0) break
    stored.push(entry)
    left -= entry.records.length
  }
  return left === 0 ? stored : undefined
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
 * says so already. An entry is stored as a whole, so any record of it shows where it is: the first ones may have
 * been trimmed.
 */
export function entriesFound(
  { entries, progress }: OutboxState,
  records: readonly SequencedRecord[],
): Confirmed {
  const found = new Map<number, Confirmation>()
  const all = [...entries.values()]
  for (const { headers, seqNum, timestamp } of records) {
    const origin = originOf(headers)
    if (origin === undefined || origin.device !== progress?.device) continue
    const entry = entryWith(all, origin.number)
    // Another writer may have copied the number, but not the nonce, unless it repeats the record.
    if (entry === undefined || entry.isFound || entry.records[0]!.nonce !== origin.nonce) continue
    const first = seqNum - (origin.number - entry.number)
    const start = found.get(entry.number)?.start ?? { seqNum: first, timestamp }
    found.set(entry.number, { start, end: { seqNum: start.seqNum + entry.records.length, timestamp } })
  }
  return [...found]
}

/** Returns the entry that has a record with a number, of entries in the order of their numbers. */
function entryWith(entries: readonly OutboxEntry[], number: number): OutboxEntry | undefined {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.number <= number) low = middle + 1
    else high = middle
  }
  const entry = entries[low - 1]
  return entry !== undefined && number < entry.number + entry.records.length ? entry : undefined
}

/**
 * Milliseconds to wait before an append that others were faster than a number of times in succession. It
 * grows with the time that an attempt takes, so that of many writers a few compete at a time.
 */
export function contentionMs(losses: number, attemptMs: number, random: number): number {
  return Math.min(random * attemptMs * 2 ** losses, CONTENTION_MS_MAX)
}

/**
 * What the failure of an attempt to send a batch means:
 * - `conflict`: the tail is another one
 * - `stored`: the producer has stored this batch and others
 * - `forgotten`: the server does not know what the producer has stored
 * - `unsupported`: the server takes no producer
 * - `refused`: the server does not take these records
 * - `stopped`: only the app can continue
 * - `retry`: anything else
 */
type SendOutcome = 'conflict' | 'stored' | 'forgotten' | 'unsupported' | 'refused' | 'stopped' | 'retry'

/** Decides about the failure of an attempt to send a batch. */
export function sendOutcome({ code, retryable }: HeadwaterError): SendOutcome {
  switch (code) {
    case 'seq_num_mismatch':
      return 'conflict'
    case 'already_appended':
      return 'stored'
    case 'producer_gap':
    case 'producer_fenced':
      return 'forgotten'
    case 'unsupported':
    case 'too_many_producers':
      return 'unsupported'
    case 'permission_denied':
    case 'invalid':
    case 'bad_json':
    case 'bad_proto':
      return 'refused'
    // The client was closed, or has no valid key.
    case 'closed':
    case 'encryption_key_invalid':
      return 'stopped'
    // A token is renewed, and a missing stream is created.
    case 'authn':
    case 'stream_not_found':
    case 'basin_not_found':
    case 'basin_deletion_pending':
    case 'stream_deletion_pending':
    case 'stream_deleted':
      return 'retry'
    default:
      return retryable ? 'retry' : 'refused'
  }
}
