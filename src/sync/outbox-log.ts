import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { type AppendRecord, type Header, meteredBytesOf, type SequencedRecord } from '../model/record.ts'

/**
 * The log of an outbox: a stream on the device, shared by its tabs. Its state is a function of its records,
 * each of which has a first header that says what it is.
 */

/** The name of the header that every record of an outbox begins with. */
export const OUTBOX_HEADER = 'headwater-outbox'

/** The kinds of records. A batch consists of parts and a last record. */
type Kind = 'record' | 'part' | 'progress' | 'attempt' | 'parked' | 'retry' | 'discard'

const KINDS: readonly Kind[] = ['record', 'part', 'progress', 'attempt', 'parked', 'retry', 'discard']

/** The positions of the records of an entry on the server. */
export type Confirmation = Pick<AppendAck, 'start' | 'end'>

/** A record that waits for the server. */
export interface OutboxRecord extends SequencedRecord {
  /** Whether the app gave the timestamp, which is sent then. It is the time of the append otherwise. */
  readonly hasOwnTimestamp: boolean
  /** A random text that identifies the append on the server. No other device knows it until it is stored. */
  readonly nonce: string
}

/** A batch of records that waits for the server. */
export interface OutboxEntry {
  /** The number of the first record. */
  readonly number: number
  /** The records, as they were appended. Their sequence numbers are their numbers. */
  readonly records: readonly OutboxRecord[]
  /** The metered size of the records on the server, in bytes. */
  readonly meteredBytes: number
  /** The reason why the batch was parked; undefined while it waits. */
  readonly error: HeadwaterError | undefined
}

/** The progress of a sender: what it has examined, and which entries it has found. */
export interface Progress {
  /** The id of the outbox. */
  readonly device: string
  /** The id of its producer on the server, a secret of the device. */
  readonly producer: string
  /** The place in the log of the last attempt that the sender knew, or -1. */
  readonly attemptAt: number
  /** Every record of the server's stream below this sequence number was examined. */
  readonly position: number
  /** Whether an attempt may have stored records at or above `position`. */
  readonly inDoubt: boolean
  /** The entries that were found on the server since the progress before. */
  readonly confirmed: readonly (readonly [number: number, confirmation: Confirmation])[]
}

/** An attempt to send a batch to the server, as a batch of a producer. */
export interface BatchAttempt {
  /** Greater than that of the attempt before, unless this one continues it. */
  readonly epoch: number
  /** The number of the batch in its epoch. */
  readonly seq: number
  /** The numbers of its entries. In the log, a negative number counts back from the place of the attempt. */
  readonly numbers: readonly number[]
  /** The tail on which it is conditional. Without a position it requires a server with producers. */
  readonly position: number | undefined
  /** Whether no earlier attempt could still store an entry that the outbox had at that time. */
  readonly isSettled: boolean
  /**
   * The place in the log of the last attempt that its sender knew, or -1. If several attempts name the same
   * one, the first counts and the others are ignored, so that all senders agree.
   */
  readonly after: number
}

/** The state of an outbox. */
export interface OutboxState {
  /** The latest progress of any sender. */
  readonly progress: Progress | undefined
  /** Every record of the server's stream below this sequence number was examined for all attempts. */
  readonly position: number
  /** Whether an attempt may have stored records at or above `position`. */
  readonly inDoubt: boolean
  /** The last attempt, with its place in the log. */
  readonly attempt: (BatchAttempt & { readonly at: number }) | undefined
  /**
   * The last attempts that did not count because they left out an entry, `from`: the place of the last one,
   * and of the attempt before all of them. A log without that entry would let them count.
   */
  readonly overtaking: { readonly from: number; readonly at: number; readonly after: number } | undefined
  /** The sequence number after the last record of the log that the state includes. */
  readonly next: number
  /** The sequence number of the latest progress whose sender knew the last attempt. */
  readonly progressAt: number
  /** The entries in the order of their numbers. */
  readonly entries: ReadonlyMap<number, OutboxEntry>
  /** The records of the batch that is being read. */
  readonly parts: readonly OutboxRecord[]
  /** The metered size of all entries, in bytes. */
  readonly meteredBytes: number
  /** The number of records of all entries. */
  readonly records: number
  /** The numbers of the records of discarded entries. */
  readonly discarded: ReadonlySet<number>
}

/** Returns the state of a log without records. */
export const emptyOutbox = (): OutboxState => ({
  progress: undefined,
  position: 0,
  inDoubt: false,
  attempt: undefined,
  overtaking: undefined,
  next: 0,
  progressAt: 0,
  entries: new Map(),
  parts: [],
  meteredBytes: 0,
  records: 0,
  discarded: new Set(),
})

/** Callbacks for entries that leave an outbox. */
export interface OutboxListener {
  readonly confirmed: (number: number, confirmation: Confirmation) => void
  readonly discarded: (entry: OutboxEntry) => void
}

/** The name of the header that identifies a record on the server (docs/protocol.md "Origin header"). */
export const ORIGIN_HEADER = 'headwater-origin'

/** The size of that header, in metered bytes. */
export const ORIGIN_METERED_BYTES = 64

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
  let { progress, position, inDoubt, attempt, overtaking, progressAt } = state
  let { meteredBytes, records: count } = state
  const remove = (number: number): OutboxEntry | undefined => {
    const entry = entries.get(number)
    if (entry === undefined) return undefined
    entries.delete(number)
    meteredBytes -= entry.meteredBytes
    count -= entry.records.length
    return entry
  }
  const replace = (number: number, error: HeadwaterError | undefined) => {
    const entry = entries.get(number)
    if (entry !== undefined) entries.set(number, { ...entry, error })
  }
  for (const record of records) {
    const [kind, nonce, given] = noteOf(record)
    if (kind === 'part') parts.push(outboxRecord(record, nonce, given))
    else if (kind === 'record') {
      const entry = entryOf([...parts, outboxRecord(record, nonce, given)])
      parts.length = 0
      entries.set(entry.number, entry)
      meteredBytes += entry.meteredBytes
      count += entry.records.length
    } else if (kind === 'progress') {
      progress = JSON.parse(lossyTextOf(record.body)) as Progress
      // A sender that does not know the last attempt may have examined its position too early.
      const isKnown = attempt === undefined || attempt.at <= progress.attemptAt
      if (isKnown) progressAt = record.seqNum
      position = isKnown ? progress.position : Math.min(position, progress.position)
      inDoubt = progress.inDoubt || !isKnown
      for (const [number, confirmation] of progress.confirmed) {
        remove(number)
        listener?.confirmed(number, confirmation)
      }
    } else if (kind === 'attempt') {
      const next = attemptOf(record)
      const isFirst = attempt === undefined || next.after > attempt.after
      if (!isFirst) continue
      const { at, after } = next
      const overtaken = overtakenBy(next, entries)
      if (overtaken !== undefined) {
        const from = overtaking?.after === after ? overtaking.from : overtaken
        overtaking = { from, at, after }
        continue
      }
      attempt = next
      position = next.position ?? position
      inDoubt = true
    } else if (kind === 'parked') {
      const { number, code, message } = JSON.parse(lossyTextOf(record.body)) as ParkedNote
      replace(number, new HeadwaterError(code, message))
    } else if (kind !== undefined) {
      const { number } = JSON.parse(lossyTextOf(record.body)) as { readonly number: number }
      if (kind === 'retry') replace(number, undefined)
      // Another tab may have decided to send it, which cannot be taken back.
      else if (entries.get(number)?.error !== undefined) {
        const entry = remove(number)
        for (const { seqNum } of entry?.records ?? []) discarded.add(seqNum)
        if (entry !== undefined) listener?.discarded(entry)
      }
    }
  }
  const next = records.at(-1)!.seqNum + 1
  return {
    progress,
    position,
    inDoubt,
    attempt,
    overtaking,
    next,
    progressAt,
    entries,
    parts,
    meteredBytes,
    records: count,
    discarded,
  }
}

/** A parked entry. */
export interface ParkedNote {
  readonly number: number
  readonly code: ErrorCode
  readonly message: string
}

/** A record of the log, ready to be appended. */
export interface LogRecord {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** Returns a batch as records of the log. `nonce` is random, without spaces. */
export function batchRecords(
  records: readonly Pick<AppendRecord, 'timestamp' | 'headers' | 'body'>[],
  nonce: string,
): LogRecord[] {
  return records.map(({ timestamp, headers, body }, index) => {
    const words = [index === records.length - 1 ? 'record' : 'part', nonce]
    if (timestamp !== undefined) words.push(String(timestamp))
    return { headers: [[NAME, utf8(words.join(' '))], ...headers], body }
  })
}

/** Returns progress as a record of the log. */
export function progressRecord(progress: Progress): LogRecord {
  return noteRecord('progress', progress)
}

/** Returns a note about entries as a record of the log. */
export function noteRecord(kind: Kind, value: object): LogRecord {
  return { headers: [[NAME, utf8(kind)]], body: utf8(JSON.stringify(value)) }
}

const NAME = utf8(OUTBOX_HEADER)

/** Returns the kind of a record, the nonce of its append, and the timestamp that the app gave it. */
function noteOf({
  headers,
}: SequencedRecord): readonly [kind?: Kind, nonce?: string | undefined, given?: string | undefined] {
  const [header] = headers
  if (header === undefined || !equalBytes(header[0], NAME)) return []
  const [kind, nonce, given] = lossyTextOf(header[1]).split(' ')
  return KINDS.includes(kind as Kind) ? [kind as Kind, nonce, given] : []
}

function outboxRecord(
  record: SequencedRecord,
  nonce: string | undefined,
  given: string | undefined,
): OutboxRecord {
  const { seqNum, headers, body } = record
  const hasOwnTimestamp = given !== undefined
  const timestamp = hasOwnTimestamp ? Number(given) : record.timestamp
  return { seqNum, timestamp, headers: headers.slice(1), body, hasOwnTimestamp, nonce: nonce ?? '' }
}

function attemptOf({ body, seqNum: at }: SequencedRecord): BatchAttempt & { readonly at: number } {
  const attempt = JSON.parse(lossyTextOf(body)) as BatchAttempt
  return { ...attempt, numbers: attempt.numbers.map((number) => (number < 0 ? at + number : number)), at }
}

/**
 * Returns the number of the first waiting entry that an attempt skips, because another tab appended it
 * meanwhile; undefined if there is none.
 */
function overtakenBy({ numbers }: BatchAttempt, entries: OutboxState['entries']): number | undefined {
  for (const { number, error } of entries.values()) {
    if (number >= numbers[0]!) return undefined
    if (error === undefined) return number
  }
  return undefined
}

function entryOf(records: readonly OutboxRecord[]): OutboxEntry {
  let meteredBytes = 0
  for (const { headers, body } of records)
    meteredBytes += meteredBytesOf(headers, body) + ORIGIN_METERED_BYTES
  return { number: records[0]!.seqNum, records, meteredBytes, error: undefined }
}
