import type { TextRecord } from 'headwater'

/** A record of a room's stream. */
export interface Message {
  /** Its sequence number: the position in the room. */
  readonly seqNum: number
  readonly author: string
  readonly text: string
  readonly sentAt: Date
}

export function messageOf({ seqNum, timestamp, headers, body }: TextRecord): Message {
  const author = headers.find(([name]) => name === 'author')?.[1] || 'Somebody'
  return { seqNum, author, text: body, sentAt: new Date(timestamp) }
}
