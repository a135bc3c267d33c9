import type { TextRecord } from 'headwater'

/** A record of a room's stream. */
export interface Message {
  /** The position in the room: the sequence number of the record. */
  readonly seqNum: number
  readonly author: string
  readonly text: string
  readonly sentAt: Date
}

/** A record of a room, which may be a message. */
export interface Entry {
  /** The position after it. */
  readonly end: number
  readonly message: Message | undefined
}

/** The latest time of a `Date`, in milliseconds. */
const TIME_MAX = 8.64e15

export function entryOf(record: TextRecord): Entry {
  return { end: record.seqNum + 1, message: isCommand(record) ? undefined : messageOf(record) }
}

/** Trim and fence commands are not messages. */
function isCommand({ headers }: TextRecord): boolean {
  return headers.length === 1 && headers[0]![0] === ''
}

function messageOf({ seqNum, timestamp, headers, body }: TextRecord): Message {
  const author = headers.find(([name]) => name === 'author')?.[1].trim() || 'Somebody'
  return { seqNum, author, text: body, sentAt: new Date(Math.min(timestamp, TIME_MAX)) }
}
