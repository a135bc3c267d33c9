import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { type AppendRecord, type Header, meteredBytesOf, type SequencedRecord } from '../model/record.ts'

/**
 * The log of an outbox: a stream on the device, shared by its tabs. Its state is a function of its records,
 * each of which has a first header that says what it is. Any tab appends entries and decisions of the app;
 * only the tab that holds the fencing token of the log appends what was sent (docs/sync-protocol.md).
 */

/** The name of the header that every record of an outbox begins with. */
export const OUTBOX_HEADER = 'headwater-outbox'

/** The name of the header that identifies a record on the server (docs/protocol.md "Origin header"). */
export const ORIGIN_HEADER = 'headwater-origin'

/** The size of that header, in metered bytes. */
export const ORIGIN_METERED_BYTES = 64

const NAME = utf8(OUTBOX_HEADER)

/**
 * The kinds of records: an entry is any number of parts and a last record; progress is that of the sender;
 * `parked`, `retry` and `discard` are about one entry; `replaced` begins again with another stream.
 */
type Kind = 'record' | 'part' | 'progress' | 'parked' | 'retry' | 'discard' | 'replaced'

const KINDS: readonly Kind[] = ['record', 'part', 'progress', 'parked', 'retry', 'discard', 'replaced']

/** The positions of the records of an entry on the server. */
export type Confirmation = Pick<AppendAck, 'start' | 'end'>

/** Entries by their numbers, with their positions on the server. */
export type Confirmed = readonly (readonly [number: number, confirmation: Confirmation])[]

/** A record that waits for the server. */
export interface OutboxRecord extends SequencedRecord {
  /** Whether the app gave the timestamp, which is sent then. It is the time of the append otherwise. */
  readonly hasOwnTimestamp: boolean
  /** A random text that identifies the append on the server. No other device knows it until it is stored. */
  readonly nonce: string
}

/** A batch of records that waits for the server, or for a copy to have it. */
export interface OutboxEntry {
  /** The number of the first record, which is its place in the log. */
  readonly number: number
  /** The records, as they were appended. Their sequence numbers are their numbers. */
  readonly records: readonly OutboxRecord[]
  /** The metered size of the records on the server, in bytes. */
  readonly meteredBytes: number
  /** The reason why the batch was parked; undefined while it waits. */
  readonly error: HeadwaterError | undefined
  /** Where the server has stored it, once that is known. */
  readonly confirmation: Confirmation | undefined
  /** Whether that may have been in a stream that was replaced since. */
  readonly isFormer: boolean
}

/** What a sender has done and found. */
export interface Progress {
  /** The id of the outbox. */
  readonly device: string
  /** The id of its producer on the server, a secret of the device. */
  readonly producer: string
  /** The number of the last batch of the producer that is known to be stored, or -1. */
  readonly batch: number
  /** What every attempt in doubt is conditional on: the tail of the stream, or the batch before. */
  readonly mode: 'tail' | 'producer'
  /** No attempt in doubt can have stored records below this sequence number. */
  readonly position: number
  /** Waiting entries up to this number may be in an attempt in doubt; -1 if there is none. */
  readonly doubtTo: number
  /** Confirmed entries below this sequence number leave the outbox: a copy has them, or none is kept. */
  readonly left: number
  /** Whether attempts at the batch after `batch` may have begun with different entries. */
  readonly isMixed: boolean
}

/** The state of an outbox. */
export interface OutboxState {
  /** The latest progress of any sender. */
  readonly progress: Progress | undefined
  /** The place in the log of that progress. */
  readonly progressAt: number
  /** The sequence number after the last record of the log that the state includes. */
  readonly next: number
  /** The entries in the order of their numbers. */
  readonly entries: ReadonlyMap<number, OutboxEntry>
  /** The records of the batch that is being read. */
  readonly parts: readonly OutboxRecord[]
  /** The metered size of all entries that are not confirmed, in bytes. */
  readonly meteredBytes: number
  /** The number of their records. */
  readonly records: number
  /** The numbers of the records of discarded entries. */
  readonly discarded: ReadonlySet<number>
}

/** Returns the state of a log without records. */
export const emptyOutbox = (): OutboxState => ({
  progress: undefined,
  progressAt: 0,
  next: 0,
  entries: new Map(),
  parts: [],
  meteredBytes: 0,
  records: 0,
  discarded: new Set(),
})

/** Callbacks for the outcomes of entries. */
export interface OutboxListener {
  readonly confirmed: (number: number, confirmation: Confirmation) => void
  readonly discarded: (entry: OutboxEntry) => void
}

/** Returns the waiting entries that an attempt in doubt may have stored. */
export function entriesInDoubt({ entries, progress }: OutboxState): readonly OutboxEntry[] {
  const doubtTo = progress?.doubtTo ?? -1
  return [...entries.values()].filter((entry) => entry.number <= doubtTo && isWaiting(entry))
}

/** Whether an entry is to be sent. */
export function isWaiting({ error, confirmation }: OutboxEntry): boolean {
  return error === undefined && confirmation === undefined
}

/** Returns the error of entries that the server may have stored. */
export function outcomeUnknownError(): HeadwaterError {
  return new HeadwaterError(
    'outcome_unknown',
    'it cannot be known whether the server has stored these records; retry or discard them',
  )
}

/**
 * Returns the state after further records of the log. Records that are not of an outbox are ignored. The
 * collections of the state before are changed, so that an append costs the same however many entries wait.
 */
export function withLogRecords(
  state: OutboxState,
  records: readonly SequencedRecord[],
  listener?: OutboxListener,
): OutboxState {
  if (records.length === 0) return state
  const entries = state.entries as Map<number, OutboxEntry>
  const discarded = state.discarded as Set<number>
  const parts = state.parts as OutboxRecord[]
  let { progress, progressAt, meteredBytes, records: count } = state

  const update = (number: number, change: Partial<OutboxEntry> | undefined) => {
    const before = entries.get(number)
    if (before === undefined) return
    const after = change && { ...before, ...change }
    if (after === undefined) entries.delete(number)
    else entries.set(number, after)
    const wasCounted = before.confirmation === undefined
    const isCounted = after !== undefined && after.confirmation === undefined
    const sign = Number(isCounted) - Number(wasCounted)
    meteredBytes += sign * before.meteredBytes
    count += sign * before.records.length
  }
  const removeConfirmed = (below: number, dropsFormer: boolean) => {
    for (const { number, confirmation, isFormer } of [...entries.values()]) {
      if (confirmation === undefined) continue
      if (confirmation.end.seqNum <= below || (dropsFormer && isFormer)) update(number, undefined)
    }
  }

  for (const record of records) {
    const [kind, nonce, given, flag] = wordsOf(record)
    if (kind === 'part') parts.push(outboxRecord(record, nonce, given))
    else if (kind === 'record') {
      const entry = entryOf([...parts, outboxRecord(record, nonce, given)])
      parts.length = 0
      entries.set(entry.number, entry)
      meteredBytes += entry.meteredBytes
      count += entry.records.length
      if (flag === SENDING && progress !== undefined) progress = { ...progress, doubtTo: entry.number }
    } else if (kind === 'progress') {
      const { confirmed, dropsFormer, ...noted } = jsonOf<ProgressNote>(record)
      progress = noted
      progressAt = record.seqNum
      for (const [number, confirmation] of confirmed) {
        update(number, { confirmation, error: undefined })
        listener?.confirmed(number, confirmation)
      }
      removeConfirmed(progress.left, dropsFormer)
    } else if (kind === 'replaced' && progress !== undefined) {
      for (const { number } of entriesInDoubt({ ...state, progress }))
        update(number, { error: outcomeUnknownError() })
      for (const { number, confirmation } of entries.values())
        if (confirmation !== undefined) update(number, { isFormer: true })
      const { producer } = jsonOf<Pick<Progress, 'producer'>>(record)
      progress = { ...initialProgress(progress.device, producer), isMixed: true }
      progressAt = record.seqNum
    } else if (kind === 'parked') {
      const { number, code, message } = jsonOf<ParkedNote>(record)
      update(number, { error: new HeadwaterError(code, message) })
      progress = mixed(progress)
    } else if (kind === 'retry') {
      update(jsonOf<EntryNote>(record).number, { error: undefined })
      progress = mixed(progress)
    } else if (kind === 'discard') {
      const entry = entries.get(jsonOf<EntryNote>(record).number)
      // Another tab may have decided to send it, which cannot be taken back.
      if (entry?.error === undefined) continue
      update(entry.number, undefined)
      for (const { seqNum } of entry.records) discarded.add(seqNum)
      listener?.discarded(entry)
    }
  }
  const next = records.at(-1)!.seqNum + 1
  return { progress, progressAt, next, entries, parts, meteredBytes, records: count, discarded }
}

/** Returns the sequence number up to which the log is not needed any more. */
export function trimPoint({ entries, parts, progressAt }: OutboxState): number {
  const [first] = entries.keys()
  return Math.min(first ?? progressAt, parts[0]?.seqNum ?? progressAt, progressAt)
}

/** Returns the progress of an outbox that has sent nothing to its stream. */
export function initialProgress(device: string, producer: string): Progress {
  return { device, producer, batch: -1, mode: 'tail', position: 0, doubtTo: -1, left: 0, isMixed: false }
}

function mixed(progress: Progress | undefined): Progress | undefined {
  return progress && { ...progress, isMixed: true }
}

interface EntryNote {
  readonly number: number
}

interface ParkedNote extends EntryNote {
  readonly code: ErrorCode
  readonly message: string
}

/** A record of the log, ready to be appended. */
export interface LogRecord {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** The word of an entry that is sent at once, without further notes. */
const SENDING = 'sending'
/** The word in place of a timestamp that the app has not given. */
const NOT_GIVEN = '-'

/** Returns a batch as records of the log. `nonce` is random, without spaces. */
export function batchRecords(
  records: readonly Pick<AppendRecord, 'timestamp' | 'headers' | 'body'>[],
  nonce: string,
  isSending = false,
): LogRecord[] {
  return records.map(({ timestamp, headers, body }, index) => {
    const isLast = index === records.length - 1
    const words = [isLast ? 'record' : 'part', nonce, timestamp ?? NOT_GIVEN]
    if (isLast && isSending) words.push(SENDING)
    return { headers: [[NAME, utf8(words.join(' '))], ...headers], body }
  })
}

interface ProgressNote extends Progress {
  readonly confirmed: Confirmed
  readonly dropsFormer: boolean
}

/**
 * Returns progress as a record of the log, with entries that were found on the server. With `dropsFormer`,
 * the entries leave that were confirmed in a stream that was replaced since: no copy will have them.
 */
export function progressRecord(
  progress: Progress,
  confirmed: Confirmed = [],
  dropsFormer = false,
): LogRecord {
  return noteRecord('progress', { ...progress, confirmed, dropsFormer } satisfies ProgressNote)
}

/** Returns the note that the stream is another one, with the id of a new producer. */
export function replacedRecord(producer: string): LogRecord {
  return noteRecord('replaced', { producer })
}

/** Returns the note that an entry is parked. */
export function parkedRecord(number: number, { code, message }: HeadwaterError): LogRecord {
  return noteRecord('parked', { number, code, message } satisfies ParkedNote)
}

/** Returns the decision to send a parked entry again, or to discard it. */
export function decisionRecord(kind: 'retry' | 'discard', number: number): LogRecord {
  return noteRecord(kind, { number } satisfies EntryNote)
}

function noteRecord(kind: Kind, value: object): LogRecord {
  return { headers: [[NAME, utf8(kind)]], body: utf8(JSON.stringify(value)) }
}

/** Returns the words of the first header: the kind, the nonce of the append, its timestamp, and a flag. */
function wordsOf({ headers }: SequencedRecord): readonly [kind?: Kind, ...others: string[]] {
  const [header] = headers
  if (header === undefined || !equalBytes(header[0], NAME)) return []
  const [kind, ...others] = lossyTextOf(header[1]).split(' ')
  return KINDS.includes(kind as Kind) ? [kind as Kind, ...others] : []
}

function jsonOf<Value>({ body }: SequencedRecord): Value {
  return JSON.parse(lossyTextOf(body))
}

function outboxRecord(record: SequencedRecord, nonce = '', given = NOT_GIVEN): OutboxRecord {
  const { seqNum, headers, body } = record
  const hasOwnTimestamp = given !== NOT_GIVEN
  const timestamp = hasOwnTimestamp ? Number(given) : record.timestamp
  return { seqNum, timestamp, headers: headers.slice(1), body, hasOwnTimestamp, nonce }
}

function entryOf(records: readonly OutboxRecord[]): OutboxEntry {
  let meteredBytes = 0
  for (const { headers, body } of records)
    meteredBytes += meteredBytesOf(headers, body) + ORIGIN_METERED_BYTES
  const number = records[0]!.seqNum
  return { number, records, meteredBytes, error: undefined, confirmation: undefined, isFormer: false }
}
