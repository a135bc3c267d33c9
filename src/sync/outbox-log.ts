import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { type AppendRecord, type Header, meteredBytesOf, type SequencedRecord } from '../model/record.ts'

/**
 * The log of an outbox: a stream on the device, shared by its tabs. Its state is a function of its records,
 * each of which has a first header that says what it is (docs/sync-protocol.md). Any tab appends entries,
 * decisions of the app, and what is found on the server; only the tab that holds the fencing token of the log
 * appends what it sends.
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
 * `stored` names entries that are on the server; `parked`, `retry` and `discard` are about one entry;
 * `replaced` begins again with another stream.
 */
const KINDS = ['record', 'part', 'progress', 'stored', 'parked', 'retry', 'discard', 'replaced'] as const

type Kind = (typeof KINDS)[number]

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
  /** Whether a copy has the records there, or gets them next. It leaves the outbox once the copy has them. */
  readonly isFound: boolean
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
}

/** The state of an outbox. */
export interface OutboxState {
  /** The latest progress of any sender. */
  readonly progress: Progress | undefined
  /** The place in the log of that progress. */
  readonly progressAt: number
  /** Whether attempts at the batch after the last one of the producer may have begun with different entries. */
  readonly isMixed: boolean
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
  /** The place in the log of the last note that the stream was replaced; 0 if there is none. */
  readonly replacedAt: number
  /** Views beyond this sequence number have everything that has left the outbox. */
  readonly copiedTo: number
}

/** Returns the state of a log without records. */
export const emptyOutbox = (): OutboxState => ({
  progress: undefined,
  progressAt: 0,
  isMixed: false,
  next: 0,
  entries: new Map(),
  parts: [],
  meteredBytes: 0,
  records: 0,
  discarded: new Set(),
  replacedAt: 0,
  copiedTo: 0,
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

/** Whether attempts were in doubt whose entries were all found, or discarded by the app, since. */
export function isDoubtFound({ entries, progress }: OutboxState): boolean {
  const doubtTo = progress?.doubtTo ?? -1
  if (doubtTo < 0) return false
  return [...entries.values()].every(
    ({ number, confirmation }) => number > doubtTo || confirmation !== undefined,
  )
}

/** Returns the entries that the server has acknowledged, and that no copy is known to have. */
export function acknowledgedEntries({ entries }: OutboxState): readonly OutboxEntry[] {
  return [...entries.values()].filter(({ confirmation, isFound }) => confirmation !== undefined && !isFound)
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
  let { progress, progressAt, isMixed, meteredBytes, records: count, replacedAt, copiedTo } = state

  const update = (before: OutboxEntry, change: Partial<OutboxEntry> | undefined) => {
    const after = change && { ...before, ...change }
    if (after === undefined) entries.delete(before.number)
    else entries.set(before.number, after)
    const wasCounted = before.confirmation === undefined
    const isCounted = after !== undefined && after.confirmation === undefined
    const sign = Number(isCounted) - Number(wasCounted)
    meteredBytes += sign * before.meteredBytes
    count += sign * before.records.length
  }
  const moveTo = (to: Progress, at: number) => {
    // An attempt at the next batch begins with the entries that wait then.
    if (to.batch !== progress?.batch || to.producer !== progress.producer) isMixed = false
    progress = to
    progressAt = at
  }
  const noteStored = ({ confirmed, copiedTo: to }: StoredNote) => {
    for (const [number, confirmation] of confirmed) {
      const entry = entries.get(number)
      // Also if the entry itself was trimmed: an append of this tab may wait for it.
      if (entry?.confirmation === undefined) listener?.confirmed(number, confirmation)
      if (entry === undefined || entry.isFound) continue
      isMixed ||= entry.confirmation === undefined
      update(entry, { confirmation, error: undefined, isFound: to !== undefined })
    }
    if (to === undefined || to === 0) return
    copiedTo = to
    for (const entry of [...entries.values()])
      if (entry.isFound && entry.confirmation!.end.seqNum <= to) update(entry, undefined)
  }

  for (const record of records) {
    const [kind, nonce, given] = wordsOf(record)
    if (kind === 'part') parts.push(outboxRecord(record, nonce, given))
    else if (kind === 'record') {
      const entry = entryOf([...parts, outboxRecord(record, nonce, given)])
      parts.length = 0
      entries.set(entry.number, entry)
      meteredBytes += entry.meteredBytes
      count += entry.records.length
    } else if (kind === 'progress') moveTo(jsonOf<Progress>(record), record.seqNum)
    else if (kind === 'stored') noteStored(jsonOf<StoredNote>(record))
    else if (kind === 'replaced' && progress !== undefined) {
      for (const entry of entriesInDoubt({ ...state, progress }))
        update(entry, { error: outcomeUnknownError() })
      // What the copy has not received is gone with the stream, unless the new one has it.
      for (const entry of [...entries.values()])
        if (entry.confirmation !== undefined) update(entry, undefined)
      const { producer } = jsonOf<Pick<Progress, 'producer'>>(record)
      moveTo(initialProgress(progress.device, producer), record.seqNum)
      replacedAt = record.seqNum
      // Views show it until they begin again.
      copiedTo = Number.MAX_SAFE_INTEGER
    } else if (kind === 'parked' || kind === 'retry' || kind === 'discard') {
      const { number, code, message } = jsonOf<EntryNote>(record)
      const entry = entries.get(number)
      if (entry === undefined) continue
      if (kind === 'parked') update(entry, { error: new HeadwaterError(code!, message!) })
      else if (kind === 'retry') update(entry, { error: undefined })
      // Another tab may have decided to send it, which cannot be taken back.
      else if (entry.error !== undefined) {
        update(entry, undefined)
        for (const { seqNum } of entry.records) discarded.add(seqNum)
        listener?.discarded(entry)
      }
      isMixed = true
    }
  }
  const next = records.at(-1)!.seqNum + 1
  const size = { meteredBytes, records: count }
  return { progress, progressAt, isMixed, next, entries, parts, ...size, discarded, replacedAt, copiedTo }
}

/** Returns the sequence number up to which the log is not needed any more. */
export function trimPoint({ entries, parts, progressAt }: OutboxState): number {
  const [first] = entries.keys()
  return Math.min(first ?? progressAt, parts[0]?.seqNum ?? progressAt, progressAt)
}

/** Returns the progress of an outbox that has sent nothing to its stream. */
export function initialProgress(device: string, producer: string): Progress {
  return { device, producer, batch: -1, mode: 'tail', position: 0, doubtTo: -1 }
}

interface EntryNote {
  readonly number: number
  /** The error of an entry that is parked. */
  readonly code?: ErrorCode
  readonly message?: string
}

interface StoredNote {
  readonly confirmed: Confirmed
  readonly copiedTo?: number | undefined
}

/** A record of the log, ready to be appended. */
export interface LogRecord {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** The word in place of a timestamp that the app has not given. */
const NOT_GIVEN = '-'

/** Returns a batch as records of the log. `nonce` is random, without spaces. */
export function batchRecords(
  records: readonly Pick<AppendRecord, 'timestamp' | 'headers' | 'body'>[],
  nonce: string,
): LogRecord[] {
  return records.map(({ timestamp, headers, body }, index) => {
    const kind: Kind = index === records.length - 1 ? 'record' : 'part'
    return { headers: [[NAME, utf8(`${kind} ${nonce} ${timestamp ?? NOT_GIVEN}`)], ...headers], body }
  })
}

/** Returns progress as a record of the log. */
export function progressRecord(progress: Progress): LogRecord {
  return noteRecord('progress', progress)
}

/**
 * Returns the note that the server has stored entries. `copiedTo` is given if a copy has them or gets them next:
 * it has all records below that sequence number.
 */
export function storedRecord(confirmed: Confirmed, copiedTo?: number): LogRecord {
  return noteRecord('stored', { confirmed, copiedTo } satisfies StoredNote)
}

/** Returns the note that the stream is another one, with the id of a new producer. */
export function replacedRecord(producer: string): LogRecord {
  return noteRecord('replaced', { producer })
}

/** Returns the note that an entry is parked. */
export function parkedRecord(number: number, { code, message }: HeadwaterError): LogRecord {
  return noteRecord('parked', { number, code, message } satisfies EntryNote)
}

/** Returns the decision to send a parked entry again, or to discard it. */
export function decisionRecord(kind: 'retry' | 'discard', number: number): LogRecord {
  return noteRecord(kind, { number } satisfies EntryNote)
}

function noteRecord(kind: Kind, value: object): LogRecord {
  return { headers: [[NAME, utf8(kind)]], body: utf8(JSON.stringify(value)) }
}

/** Returns the words of the first header: the kind, the nonce of the append, and its timestamp. */
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
  return { number, records, meteredBytes, error: undefined, confirmation: undefined, isFound: false }
}
