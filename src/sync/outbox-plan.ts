import type { HeadwaterError } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import type { AppendRecord, SequencedRecord } from '../model/record.ts'
import { originHeader, originOf } from './origin.ts'
import type { Confirmation, OutboxEntry, OutboxState, Progress } from './outbox-log.ts'

/** The treatment of records behind a parked one: they wait, or are sent. */
export type AfterRefusal = 'stop' | 'continue'

/** The current activity of a sender. */
export type SenderState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'sending' }
  | { readonly kind: 'offline'; readonly error: HeadwaterError; readonly nextAttemptAt: number }
  | { readonly kind: 'stopped'; readonly error: HeadwaterError }

/**
 * Returns the entries that the next attempt contains: as many in succession as one batch may have, and at
 * most `entriesMax`. Empty if there is nothing to send.
 */
export function entriesToSend(
  { entries }: OutboxState,
  afterRefusal: AfterRefusal,
  entriesMax: number,
): readonly OutboxEntry[] {
  const chosen: OutboxEntry[] = []
  let [records, meteredBytes] = [0, 0]
  for (const entry of entries.values()) {
    if (entry.error !== undefined) {
      if (afterRefusal === 'stop') break
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

/**
 * Returns the entries of an outbox that are among successive records of the server, with their places. A
 * batch is stored as a whole, so any record of it shows where its entries are: the first ones may have been
 * trimmed.
 */
export function confirmationsIn(
  state: OutboxState,
  records: readonly SequencedRecord[],
): (readonly [number: number, confirmation: Confirmation])[] {
  const { entries, progress } = state
  const found: (readonly [number, Confirmation])[] = []
  const seen = new Set<OutboxEntry>()
  for (const [index, { headers, seqNum, timestamp }] of records.entries()) {
    const origin = originOf(headers)
    if (origin === undefined || origin.device !== progress?.device) continue
    // Records are missing only before the first one.
    const entry = entryWith(entries, origin.number, index === 0 ? BATCH_RECORDS_MAX : 1)
    // Another writer may have copied the number, but not the nonce, unless it repeats the record.
    if (entry === undefined || entry.records[0]!.nonce !== origin.nonce || seen.has(entry)) continue
    seen.add(entry)
    const start = seqNum - (origin.number - entry.number)
    const end = start + entry.records.length
    const last = records[index + end - seqNum - 1] ?? records[index]!
    if (index === 0) found.push(...confirmationsBefore(state, entry.number, { seqNum: start, timestamp }))
    found.push([
      entry.number,
      { start: { seqNum: start, timestamp }, end: { seqNum: end, timestamp: last.timestamp } },
    ])
  }
  return found
}

/**
 * Returns the entries that precede another one in the last attempt, with their places before a position. None
 * if an earlier attempt may have stored that entry without them.
 */
function confirmationsBefore(
  { entries, attempt }: OutboxState,
  number: number,
  position: Confirmation['start'],
): (readonly [number: number, confirmation: Confirmation])[] {
  const found: (readonly [number, Confirmation])[] = []
  // The number of an entry is its place in the log: these were appended after all earlier attempts.
  if (attempt === undefined || attempt.numbers[0]! <= attempt.after) return found
  let end = position
  for (let index = attempt.numbers.indexOf(number) - 1; index >= 0; index--) {
    const entry = entries.get(attempt.numbers[index]!)
    if (entry === undefined) break
    const start = { ...end, seqNum: end.seqNum - entry.records.length }
    found.unshift([entry.number, { start, end }])
    end = start
  }
  return found
}

/** Returns the entry that has a record with a number among its first ones, at most `count`. */
function entryWith(entries: OutboxState['entries'], number: number, count: number): OutboxEntry | undefined {
  for (let first = number; first > number - count; first--) {
    const entry = entries.get(first)
    if (entry !== undefined) return number < first + entry.records.length ? entry : undefined
  }
  return undefined
}

/** How long a writer counts as one that appends at the same time, in milliseconds. */
const RECENT_MS = 5_000
const WRITERS_MAX = 1_000

/** The other writers that appended lately, with the timestamps of their last records. */
export type RecentWriters = ReadonlyMap<string, number>

/**
 * Returns the writers after further records were examined: each device is one, and those without an outbox
 * are one too. `time` is the timestamp of the newest record. At most 1,000 are counted.
 */
export function recentWriters(
  before: RecentWriters,
  records: readonly SequencedRecord[],
  device: string,
  time: number,
): RecentWriters {
  const writers = new Map(before)
  for (const { headers, timestamp } of records) {
    const writer = originOf(headers)?.device ?? ''
    if (writer !== device && (writers.size < WRITERS_MAX || writers.has(writer)))
      writers.set(writer, timestamp)
  }
  for (const [writer, timestamp] of writers) if (timestamp < time - RECENT_MS) writers.delete(writer)
  return writers
}

/** Returns the entries of a batch that was acknowledged, with their places. */
export function confirmationsOf(
  entries: readonly OutboxEntry[],
  { start, end }: Confirmation,
): (readonly [number: number, confirmation: Confirmation])[] {
  let { seqNum } = start
  return entries.map(({ number, records }) => {
    const first = { seqNum, timestamp: start.timestamp }
    seqNum += records.length
    return [number, { start: first, end: { seqNum, timestamp: end.timestamp } }] as const
  })
}

/** Returns the state of an outbox once confirmed entries have left it. */
export function withoutConfirmed(state: OutboxState, confirmed: Progress['confirmed']): OutboxState {
  const entries = new Map(state.entries)
  for (const [number] of confirmed) entries.delete(number)
  return { ...state, entries }
}

/** Whether an outbox has entries beside those that are confirmed. */
export function isEntryLeft({ entries }: OutboxState, confirmed: Progress['confirmed']): boolean {
  const numbers = new Set(confirmed.map(([number]) => number))
  for (const number of entries.keys()) if (!numbers.has(number)) return true
  return false
}

/**
 * The meaning of a failed attempt: try again, examine the server first, begin another epoch, try without a
 * producer, park the records, or give up.
 */
type SendOutcome = 'retry' | 'conflict' | 'broken' | 'plain' | 'refused' | 'stopped'

/** Decides about the failure of an attempt. */
export function attemptOutcome({ code, retryable }: HeadwaterError): SendOutcome {
  switch (code) {
    case 'seq_num_mismatch':
      return 'conflict'
    // The server has forgotten the producer, or knows more of it than this device: one was restored.
    case 'producer_gap':
    case 'producer_fenced':
    case 'already_appended':
      return 'broken'
    case 'unsupported':
    case 'too_many_producers':
      return 'plain'
    case 'permission_denied':
    case 'invalid':
    case 'bad_json':
    case 'bad_proto':
      return 'refused'
    // The client was closed, or has no valid key.
    case 'closed':
    case 'encryption_key_invalid':
      return 'stopped'
    // A token is renewed, a missing stream is created, and everything else passes.
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

/** Returns the sequence number up to which the log is not needed any more. */
export function trimPoint({ entries, parts, progressAt, attempt, overtaking }: OutboxState): number {
  const [first] = entries.keys()
  const needed = [first, parts[0]?.seqNum, progressAt, attempt?.at]
  const point = Math.min(...needed.map((seqNum) => seqNum ?? Number.POSITIVE_INFINITY))
  const isWithin = overtaking !== undefined && point > overtaking.from && point <= overtaking.at
  return isWithin ? overtaking.from : point
}
