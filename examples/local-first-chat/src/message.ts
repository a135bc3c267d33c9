import type { TextRecord } from 'headwater'
import type { SyncedRecord } from 'headwater/sync'

/** A record of a room's stream. */
export interface Message {
  /** Stays the same from pending to confirmed. */
  readonly key: string
  /** The position in the room; undefined while the message is pending. */
  readonly seqNum: number | undefined
  readonly author: string
  readonly text: string
  readonly sentAt: Date
  /** Names a pending message for `retry` and `discard`; undefined when it is on the server. */
  readonly number: number | undefined
  /** Why the server refused the message. */
  readonly error: Error | undefined
}

/** A record of a room, which may be a message. */
export interface Entry {
  readonly key: string
  /** The position after it; undefined while it is pending. */
  readonly end: number | undefined
  readonly message: Message | undefined
}

/** The latest time of a `Date`, in milliseconds. */
const TIME_MAX = 8.64e15

/** Converts a record of a synced stream. */
export function entryOf(record: SyncedRecord): Entry {
  const { key, seqNum, isPending } = record
  const number = isPending ? record.origin.number : undefined
  const error = isPending ? record.error : undefined
  const message = isCommand(record) ? undefined : { key, seqNum, number, error, ...contentOf(record) }
  return { key, end: seqNum === undefined ? undefined : seqNum + 1, message }
}

/** Converts a record of a local copy. */
export function storedEntryOf(record: TextRecord): Entry {
  return entryOf({ ...record, isPending: false, key: String(record.seqNum), origin: undefined })
}

type Content = Pick<SyncedRecord, 'timestamp' | 'headers' | 'body'>

/** Trim and fence commands are not messages. */
function isCommand({ headers }: Content): boolean {
  return headers.length === 1 && headers[0]![0] === ''
}

function contentOf({ timestamp, headers, body }: Content) {
  const author = headers.find(([name]) => name === 'author')?.[1].trim() || 'Somebody'
  return { author, text: body, sentAt: new Date(Math.min(timestamp, TIME_MAX)) }
}
