import { equalBytes, lossyTextOf, utf8 } from '../model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { type AppendRecord, meteredBytesOf, type SequencedRecord } from '../model/record.ts'
import { ORIGIN_METERED_BYTES } from './synced-record.ts'

/**
 * The log of an outbox: a stream on the device, shared by its tabs. Its state is a function of its records,
 * each of which has a first header that says what it is (docs/sync-protocol.md). Any tab appends entries,
 * decisions of the app, and what is found on the server; only the tab that holds the fencing token of the log
 * appends what it sends.
 */

/** The name of the header that every record of an outbox begins with. */
export const OUTBOX_HEADER = 'headwater-outbox'

const NAME = utf8(OUTBOX_HEADER)

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
  readonly error?: HeadwaterError | undefined
  /** An attempt that has ended may have stored it at this position or beyond. Undefined if there is none. */
  readonly position?: number | undefined
  /** Where the server has stored it, once that is known. */
  readonly confirmation?: Confirmation | undefined
  /** Whether a copy has the records there, or gets them next. It leaves the outbox once the copy has them. */
  readonly isFound?: boolean | undefined
}

/** A batch that is being sent. Nothing else is sent until it is known whether it is stored. */
export interface Attempt {
  /** The numbers of its entries. */
  readonly entries: readonly number[]
  /** The tail that it is conditional on. Without that condition, it cannot be stored below. */
  readonly position: number
  /** Whether it is conditional on the tail. */
  readonly isAtTail: boolean
  /** Its number among the batches of the producer; undefined without a producer. */
  readonly batch?: number | undefined
}

/** What the senders of an outbox have done. */
export interface Progress {
  /** The id of the outbox. */
  readonly device: string
  /** The id of its producer on the server, a secret of the device. */
  readonly producer: string
  readonly epoch: number
  /** The number of the last batch of the epoch that is known to be stored, or -1. */
  readonly batch: number
  readonly attempt?: Attempt | undefined
}

/** Returns the progress of an outbox that has sent nothing. */
export function initialProgress(device: string, producer: string): Progress {
  return { device, producer, epoch: 0, batch: -1 }
}

/**
 * Returns the progress after an attempt that may be stored was given up. The epoch ends, so that no number
 * stands for two batches, and that the server does not store the attempt once it has a later batch.
 */
export function nextEpoch(progress: Progress): Progress {
  return { ...progress, epoch: progress.epoch + 1, batch: -1, attempt: undefined }
}

/** Callbacks for the outcomes of entries. */
export interface OutboxListener {
  readonly confirmed: (number: number, confirmation: Confirmation) => void
  readonly discarded: (entry: OutboxEntry) => void
}

/** The state of an outbox, as far as its log was read. */
export class OutboxState {
  /** The latest progress of any sender. */
  progress: Progress | undefined
  /** The entries in the order of their numbers. */
  readonly entries = new Map<number, OutboxEntry>()
  /** The sequence number after the last record of the log that the state includes. */
  next = 0
  /** The metered size of all entries that are not confirmed, in bytes. */
  meteredBytes = 0
  /** The number of their records. */
  records = 0
  /** The numbers of the records of discarded entries. */
  readonly discarded = new Set<number>()
  /** The place in the log of the last note that the stream was replaced; 0 if there is none. */
  replacedAt = 0
  /** Views beyond this sequence number have everything that has left the outbox. */
  copiedTo = 0
  /** The place in the log of the progress. */
  #progressAt = 0
  /** The records of the entry that is being read. */
  #parts: OutboxRecord[] = []

  /** The sequence number up to which the log is not needed any more. */
  get trimPoint(): number {
    const [first = this.#progressAt] = this.entries.keys()
    return Math.min(first, this.#parts[0]?.seqNum ?? first, this.#progressAt)
  }

  /** Includes further records of the log. Those that are not of an outbox are ignored. */
  include(records: readonly SequencedRecord[], listener?: OutboxListener): void {
    for (const record of records) {
      const [kind, nonce, given] = wordsOf(record)
      this.next = record.seqNum + 1
      switch (kind) {
        case 'part':
          this.#parts.push(outboxRecord(record, nonce, given))
          break
        case 'record':
          this.#update(undefined, entryOf([...this.#parts, outboxRecord(record, nonce, given)]))
          this.#parts = []
          break
        case 'progress':
          this.progress = noteOf(kind, record)
          this.#progressAt = record.seqNum
          break
        case 'stored':
          this.#stored(noteOf(kind, record), listener)
          break
        case 'ended':
          this.#ended(noteOf(kind, record))
          break
        case 'retry':
        case 'discard':
          this.#decided(kind, noteOf(kind, record).number, listener)
          break
        case 'replaced':
          this.#replaced(record.seqNum)
      }
    }
  }

  #stored({ confirmed, copiedTo }: Notes['stored'], listener: OutboxListener | undefined): void {
    const { attempt, batch } = this.progress ?? {}
    const known = confirmed.find(([number]) => attempt?.entries.includes(number))
    if (attempt !== undefined && known !== undefined) {
      // A batch is stored as a whole, also if a part of it was found, or the rest was trimmed.
      for (const [number, place] of placesOf(this.#entriesOf(attempt.entries), known)) {
        // A copy that begins behind an entry never has it.
        const isPassed = copiedTo !== undefined && place.end.seqNum <= copiedTo
        this.#confirm(number, place, isPassed, listener)
      }
      this.progress = { ...this.progress!, batch: attempt.batch ?? batch!, attempt: undefined }
    }
    for (const [number, place] of confirmed) this.#confirm(number, place, copiedTo !== undefined, listener)
    if (copiedTo === undefined || copiedTo === 0) return
    this.copiedTo = copiedTo
    for (const entry of this.entries.values())
      if (entry.isFound && entry.confirmation!.end.seqNum <= copiedTo) this.#update(entry, undefined)
  }

  #confirm(
    number: number,
    confirmation: Confirmation,
    isFound: boolean,
    listener: OutboxListener | undefined,
  ): void {
    const entry = this.entries.get(number)
    // Also if the entry itself was trimmed: an append of this tab may wait for it.
    if (entry?.confirmation === undefined) listener?.confirmed(number, confirmation)
    if (entry === undefined || entry.isFound) return
    this.#update(entry, { ...entry, confirmation, isFound, error: undefined })
  }

  #replaced(seqNum: number): void {
    if (this.progress === undefined) return
    for (const entry of this.#entriesOf(this.progress.attempt?.entries ?? []))
      this.#update(entry, { ...entry, error: outcomeUnknownError() })
    // What the copy has not received is gone with the stream, unless the new one has it.
    for (const entry of this.entries.values())
      if (entry.confirmation !== undefined) this.#update(entry, undefined)
    this.progress = nextEpoch(this.progress)
    this.#progressAt = this.replacedAt = seqNum
    // Views show it until they begin again.
    this.copiedTo = Number.MAX_SAFE_INTEGER
  }

  #ended({ numbers, position, parked }: Notes['ended']): void {
    const error = parked && new HeadwaterError(parked.code, parked.message)
    // It may have been found meanwhile.
    for (const entry of this.#entriesOf(numbers))
      if (entry.confirmation === undefined)
        this.#update(entry, { ...entry, position: entry.position ?? position, error })
  }

  #decided(kind: 'retry' | 'discard', number: number, listener: OutboxListener | undefined): void {
    const entry = this.entries.get(number)
    // Another tab may have decided before.
    if (entry?.error === undefined) return
    this.#update(entry, kind === 'retry' ? { ...entry, error: undefined } : undefined)
    if (kind === 'retry') return
    for (const { seqNum } of entry.records) this.discarded.add(seqNum)
    listener?.discarded(entry)
  }

  #entriesOf(numbers: readonly number[]): OutboxEntry[] {
    return numbers.flatMap((number) => this.entries.get(number) ?? [])
  }

  #update(before: OutboxEntry | undefined, after: OutboxEntry | undefined): void {
    if (after === undefined) this.entries.delete(before!.number)
    else this.entries.set(after.number, after)
    this.#count(before, -1)
    this.#count(after, 1)
  }

  #count(entry: OutboxEntry | undefined, sign: 1 | -1): void {
    if (entry === undefined || entry.confirmation !== undefined) return
    this.meteredBytes += sign * entry.meteredBytes
    this.records += sign * entry.records.length
  }
}

/** Whether an entry is to be sent. */
export function isWaiting({ error, confirmation }: OutboxEntry): boolean {
  return error === undefined && confirmation === undefined
}

/** Returns the places of the entries of a batch that was stored, of which one is known. */
export function placesOf(
  entries: readonly OutboxEntry[],
  [known, { start, end }]: Confirmed[number],
): Confirmed {
  let { seqNum } = start
  for (const { number, records } of entries) if (number < known) seqNum -= records.length
  return entries.map(({ number, records }) => {
    const first = { seqNum, timestamp: start.timestamp }
    seqNum += records.length
    return [number, { start: first, end: { seqNum, timestamp: end.timestamp } }]
  })
}

/** Returns the error of entries that the server may have stored. */
export function outcomeUnknownError(): HeadwaterError {
  return new HeadwaterError(
    'outcome_unknown',
    'it cannot be known whether the server has stored these records; retry or discard them',
  )
}

/** The notes of a log, besides the records of entries, by their kinds. */
interface Notes {
  /** What a sender has done. */
  readonly progress: Progress
  /** Entries are on the server. If a copy has them, or gets them next: it has everything below `copiedTo`. */
  readonly stored: { readonly confirmed: Confirmed; readonly copiedTo?: number | undefined }
  /**
   * An attempt with these entries has ended. If it may be stored: at `position` or beyond. The entries are
   * parked for a reason, or wait.
   */
  readonly ended: {
    readonly numbers: readonly number[]
    readonly position?: number | undefined
    readonly parked?: { readonly code: ErrorCode; readonly message: string } | undefined
  }
  /** The app sends a parked entry again. */
  readonly retry: { readonly number: number }
  /** The app discards a parked entry. */
  readonly discard: { readonly number: number }
  /** The stream is another one. */
  readonly replaced: Record<never, never>
}

/** A record of the log, ready to be appended. */
export type LogRecord = Pick<AppendRecord, 'headers' | 'body'>

/** Returns a note as a record of the log. */
export function noteRecord<Kind extends keyof Notes>(kind: Kind, note: Notes[Kind]): LogRecord {
  return { headers: [[NAME, utf8(kind)]], body: utf8(JSON.stringify(note)) }
}

function noteOf<Kind extends keyof Notes>(_: Kind, { body }: SequencedRecord): Notes[Kind] {
  return JSON.parse(lossyTextOf(body))
}

/** The word in place of a timestamp that the app has not given. */
const NOT_GIVEN = '-'

/**
 * Returns an entry as records of the log: any number of parts, and a last record. `nonce` is random, without
 * spaces.
 */
export function entryRecords(
  records: readonly Pick<AppendRecord, 'timestamp' | 'headers' | 'body'>[],
  nonce: string,
): LogRecord[] {
  return records.map(({ timestamp, headers, body }, index) => {
    const kind = index === records.length - 1 ? 'record' : 'part'
    return { headers: [[NAME, utf8(`${kind} ${nonce} ${timestamp ?? NOT_GIVEN}`)], ...headers], body }
  })
}

/** Returns the words of the first header: the kind, the nonce of the append, and its timestamp. */
function wordsOf({ headers }: SequencedRecord): readonly (string | undefined)[] {
  const [header] = headers
  return header !== undefined && equalBytes(header[0], NAME) ? lossyTextOf(header[1]).split(' ') : []
}

function outboxRecord(record: SequencedRecord, nonce = '', given = NOT_GIVEN): OutboxRecord {
  const { seqNum, headers, body } = record
  const hasOwnTimestamp = given !== NOT_GIVEN
  const timestamp = hasOwnTimestamp ? Number(given) : record.timestamp
  return { seqNum, timestamp, headers: headers.slice(1), body, hasOwnTimestamp, nonce }
}

function entryOf(records: readonly OutboxRecord[]): OutboxEntry {
  const sizes = records.map(({ headers, body }) => meteredBytesOf(headers, body) + ORIGIN_METERED_BYTES)
  return { number: records[0]!.seqNum, records, meteredBytes: sizes.reduce((sum, size) => sum + size, 0) }
}
